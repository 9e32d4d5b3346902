//! Text tables for people: columns as wide as their widest cell, numbers to the right.

/// A table that is built row by row and shown at the end.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

#[derive(Debug)]
struct Column {
    title: &'static str,
    align: Align,
}

/// Which side of its column a cell stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

impl Table {
    /// An empty table with these columns.
    pub(crate) fn new(columns: &[(&'static str, Align)]) -> Self {
        let columns = columns.iter().map(|&(title, align)| Column { title, align }).collect();
        Self { columns, rows: Vec::new() }
    }

    /// Adds a row; cells beyond the columns are dropped, missing ones are empty.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }

    /// The table as text, a newline after each line and no spaces at their ends.
    pub(crate) fn render(&self) -> String {
        let titles: Vec<String> = self.columns.iter().map(|column| column.title.to_owned()).collect();
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|index| {
                std::iter::once(&titles).chain(&self.rows).map(|row| width(row, index)).max().unwrap_or(0)
            })
            .collect();
        let rule: Vec<String> = widths.iter().map(|&width| "-".repeat(width)).collect();
        [&titles, &rule].into_iter().chain(&self.rows).map(|row| self.line(row, &widths)).collect()
    }

    fn line(&self, row: &[String], widths: &[usize]) -> String {
        let mut line = String::new();
        for (index, (column, &width)) in self.columns.iter().zip(widths).enumerate() {
            let cell = row.get(index).map_or("", String::as_str);
            let gap = if index == 0 { "" } else { "  " };
            line.push_str(gap);
            let padding = " ".repeat(width.saturating_sub(cell.chars().count()));
            match column.align {
                Align::Left => line.extend([cell, &padding]),
                Align::Right => line.extend([padding.as_str(), cell]),
            }
        }
        line.truncate(line.trim_end().len());
        line.push('\n');
        line
    }
}

fn width(row: &[String], index: usize) -> usize {
    row.get(index).map_or(0, |cell| cell.chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table =
            Table::new(&[("part", Align::Left), ("minutes", Align::Right), ("note", Align::Left)]);
        table.row(["lint".into(), "0.2".into(), String::new()]);
        table.row(["real-server tests".into(), "12.0".into(), "cut – 30 s".into()]);
        let expected = "\
part               minutes  note
-----------------  -------  ----------
lint                   0.2
real-server tests     12.0  cut – 30 s
";
        assert_eq!(table.render(), expected);
    }
}
