//! `mailboat customize`: shows offline what an object becomes at a Location.

use anyhow::Result;
use mailboat_center::customize::Files;
use serde_json::Value;

use crate::documents;
use crate::failure::refusal;
use crate::flags::CustomizeArguments;

/// Reads the files, and prints all objects customized, or none of them.
pub fn run(arguments: &CustomizeArguments) -> Result<()> {
    let objects = documents::read(&arguments.object)?;
    let mut customizers: Vec<Value> = Vec::new();
    for path in &arguments.customizer {
        customizers.extend(documents::read(path)?);
    }
    let location = match &arguments.location {
        None => None,
        Some(path) => match documents::read(path)?.as_slice() {
            [one] => Some(one.clone()),
            several => {
                return Err(refusal(format!(
                    "{} holds {} objects; give a file with one Location",
                    path.display(),
                    several.len()
                )));
            }
        },
    };
    let files =
        Files::new(&customizers, location.as_ref()).map_err(|unusable| refusal(unusable.to_string()))?;
    let (mut shown, mut notes) = (Vec::with_capacity(objects.len()), Vec::new());
    for object in &objects {
        let customized = files.customize(object).map_err(|unshown| refusal(unshown.to_string()))?;
        notes.extend(customized.note);
        shown.push(customized.object);
    }
    for note in notes {
        say!("note: {note}");
    }
    documents::print(&shown, arguments.output)
}
