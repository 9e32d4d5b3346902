//! What a list or a watch answers, cut into lines or taken as a whole, without more copying than needed.

use std::fmt;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use mailboat_object::wire::{Fault, FaultKind};
use tokio::time::Instant;

/// The body of an answer as it arrives.
///
/// A line that came in one piece is a slice of that piece; only a line split over pieces is put together in
/// a buffer. Dropping it ends the request at the server.
pub struct Lines {
    pieces: BoxStream<'static, Result<Bytes, Fault>>,
    /// What arrived and is not yet taken: the rest of the last piece.
    rest: Bytes,
    /// The beginning of a line whose end has not arrived.
    begun: BytesMut,
    limits: Limits,
    ended: bool,
    connected_at: Instant,
}

/// How much a body may be.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// One line, without its newline.
    pub line_bytes: usize,
    /// The whole body, where it is taken as a whole.
    pub whole_bytes: usize,
    /// How long to wait for the next piece where the body is taken as a whole. Lines of a watch may be
    /// minutes apart; that its peer still lives is the connection's business.
    pub pause: Duration,
}

impl Lines {
    /// The lines of a body that arrives in these pieces, over a connection that was just made.
    pub fn new(pieces: BoxStream<'static, Result<Bytes, Fault>>, limits: Limits) -> Self {
        Self {
            pieces,
            rest: Bytes::new(),
            begun: BytesMut::new(),
            limits,
            ended: false,
            connected_at: Instant::now(),
        }
    }

    /// The same lines, over a connection made at this time.
    #[must_use]
    pub fn over(mut self, connected_at: Instant) -> Self {
        self.connected_at = connected_at;
        self
    }

    /// When the connection was made that this arrives over. One made since a follower last looked may lead to
    /// another server, or to one that was restored from a backup.
    pub fn connected_at(&self) -> Instant {
        self.connected_at
    }

    /// The next line without its newline; `None` once the body has ended. After a fault it has ended, too.
    /// Nothing is lost if the future is dropped before it is done.
    pub async fn next(&mut self) -> Option<Result<Bytes, Fault>> {
        loop {
            if let Some(line) = self.take_line() {
                return Some(line);
            }
            if self.ended {
                return None;
            }
            match self.pieces.next().await {
                Some(Ok(piece)) => self.rest = piece,
                Some(Err(fault)) => {
                    self.end();
                    return Some(Err(fault));
                }
                None => {
                    // A last line without a newline is torn: an event cut off in the middle is no event.
                    let torn = !self.begun.is_empty();
                    self.end();
                    return torn.then(|| {
                        Err(Fault::new(FaultKind::Retry(None), "the stream ended in the middle of a line"))
                    });
                }
            }
        }
    }

    /// The whole body at once.
    pub async fn whole(mut self) -> Result<Bytes, Fault> {
        let mut first = Bytes::new();
        let mut all = BytesMut::new();
        loop {
            let piece = match tokio::time::timeout(self.limits.pause, self.pieces.next()).await {
                Err(_) => {
                    let text = format!("the answer stopped in the middle for {:?}", self.limits.pause);
                    return Err(Fault::new(FaultKind::Retry(None), text));
                }
                Ok(None) => return Ok(if all.is_empty() { first } else { all.freeze() }),
                Ok(Some(piece)) => piece?,
            };
            if first.len().max(all.len()) + piece.len() > self.limits.whole_bytes {
                let text =
                    format!("the answer is larger than our limit of {} bytes", self.limits.whole_bytes);
                return Err(Fault::new(FaultKind::TooLarge, text));
            }
            // Most answers are one piece, which is then handed on as it is.
            if first.is_empty() && all.is_empty() {
                first = piece;
            } else {
                if all.is_empty() {
                    all.reserve(2 * (first.len() + piece.len()));
                    all.extend_from_slice(&first);
                }
                all.extend_from_slice(&piece);
            }
        }
    }

    fn take_line(&mut self) -> Option<Result<Bytes, Fault>> {
        while !self.rest.is_empty() {
            let end = memchr::memchr(b'\n', &self.rest);
            let length = end.unwrap_or(self.rest.len());
            if self.begun.len() + length > self.limits.line_bytes {
                self.end();
                let text = format!("a line is longer than our limit of {} bytes", self.limits.line_bytes);
                return Some(Err(Fault::new(FaultKind::TooLarge, text)));
            }
            let part = self.rest.split_to(length);
            if end.is_none() {
                self.begun.extend_from_slice(&part);
                return None;
            }
            self.rest = self.rest.split_off(1);
            let line = if self.begun.is_empty() {
                part
            } else {
                self.begun.extend_from_slice(&part);
                self.begun.split().freeze()
            };
            if !line.is_empty() {
                return Some(Ok(line));
            }
        }
        None
    }

    fn end(&mut self) {
        self.ended = true;
        self.rest = Bytes::new();
        self.begun = BytesMut::new();
        self.pieces = futures::stream::empty().boxed();
    }
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lines({} bytes at hand, ended: {})", self.rest.len() + self.begun.len(), self.ended)
    }
}

#[cfg(test)]
mod tests {
    use futures::stream;

    use super::*;

    const LIMITS: Limits = Limits { line_bytes: 10, whole_bytes: 20, pause: Duration::from_secs(5) };

    fn lines(pieces: &[&'static str]) -> Lines {
        let pieces: Vec<Result<Bytes, Fault>> =
            pieces.iter().map(|piece| Ok(Bytes::from_static(piece.as_bytes()))).collect();
        Lines::new(stream::iter(pieces).boxed(), LIMITS)
    }

    async fn collect(mut lines: Lines) -> Vec<String> {
        let mut seen = Vec::new();
        while let Some(line) = lines.next().await {
            seen.push(match line {
                Ok(line) => String::from_utf8_lossy(&line).into_owned(),
                Err(fault) => format!("{:?}", fault.kind),
            });
        }
        seen
    }

    #[tokio::test]
    async fn lines_come_whole_however_the_pieces_are_cut() {
        let text = "one\ntwo\n\nthree is\n";
        for first in 0..=text.len() {
            for second in first..=text.len() {
                let seen = collect(lines(&[&text[..first], &text[first..second], &text[second..]])).await;
                assert_eq!(seen, ["one", "two", "three is"], "cut at {first} and {second}");
            }
        }
    }

    #[tokio::test]
    async fn a_line_in_one_piece_is_not_copied() {
        let piece = Bytes::from_static(b"one\ntwo\n");
        let at = piece.as_ptr();
        let mut lines = Lines::new(stream::iter([Ok(piece)]).boxed(), LIMITS);
        assert_eq!(lines.next().await.unwrap().unwrap().as_ptr(), at);
    }

    #[tokio::test]
    async fn a_line_cut_off_by_the_end_is_a_fault_and_not_an_event() {
        assert_eq!(collect(lines(&["one\ntw"])).await, ["one", "Retry(None)"]);
    }

    #[tokio::test]
    async fn a_line_without_end_is_refused_at_the_limit() {
        assert_eq!(
            collect(lines(&["0123456789\n", "01234", "56789", "0"])).await,
            ["0123456789", "TooLarge"]
        );
    }

    #[tokio::test]
    async fn a_whole_body_is_bounded_too() {
        assert_eq!(lines(&["0123456789", "0123456789"]).whole().await.unwrap().len(), 20);
        assert_eq!(lines(&["0123"]).whole().await.unwrap(), "0123");
        assert_eq!(lines(&[]).whole().await.unwrap(), "");
        let fault = lines(&["0123456789", "0123456789", "0"]).whole().await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::TooLarge);
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_that_stops_in_the_middle_is_given_up() {
        let pieces = stream::iter([Ok(Bytes::from_static(b"{"))]).chain(stream::pending()).boxed();
        let fault = Lines::new(pieces, LIMITS).whole().await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::Retry(None), "{fault}");
    }
}
