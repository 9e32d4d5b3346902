//! Waiting for a condition, with a limit, and with the last thing seen when it does not come true.

use std::fmt::Display;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

/// The pause between two looks grows from the first to the longest: what happens soon is seen soon, and a server
/// that takes a minute to start is not kept from it by questions.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// A condition did not come true within its limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{description}: not within {limit:?}; last seen: {last_seen}")]
pub struct NotInTime {
    /// What was waited for.
    pub description: String,
    /// How long it was waited for.
    pub limit: Duration,
    /// What the condition said at its last look.
    pub last_seen: String,
}

/// Looks at `condition` until it gives `Ok`, at most for `limit`.
///
/// An `Err` means "not yet" and says what was seen instead; the last one is in the error. A single look that
/// hangs (a paused server) counts as not yet as well, and is given up at the limit.
pub async fn wait_until<T, Seen, Condition, Look>(
    description: impl Into<String>,
    limit: Duration,
    mut condition: Condition,
) -> Result<T, NotInTime>
where
    Condition: FnMut() -> Look,
    Look: Future<Output = Result<T, Seen>>,
    Seen: Display,
{
    let deadline = Instant::now() + limit;
    let mut pause = FIRST_PAUSE;
    let mut last_seen = "nothing yet: the first look did not return".to_owned();
    loop {
        match timeout_at(deadline, condition()).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(seen)) => last_seen = seen.to_string(),
            Err(_elapsed) => {}
        }
        if Instant::now() + pause >= deadline {
            return Err(NotInTime { description: description.into(), limit, last_seen });
        }
        sleep(pause).await;
        pause = (pause * 3 / 2).min(LONGEST_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::pending;

    use super::*;

    #[tokio::test]
    async fn the_value_is_given_as_soon_as_the_condition_holds() {
        let looks = Cell::new(0);
        let value = wait_until("third look", Duration::from_secs(5), async || {
            looks.set(looks.get() + 1);
            if looks.get() == 3 { Ok("here") } else { Err(format!("look {}", looks.get())) }
        })
        .await;
        assert_eq!((value, looks.get()), (Ok("here"), 3));
    }

    #[tokio::test]
    async fn a_condition_that_never_holds_ends_with_the_last_thing_seen() {
        let looks = Cell::new(0);
        let error = wait_until("a ship", Duration::from_millis(200), async || {
            looks.set(looks.get() + 1);
            Err::<(), _>(format!("only waves, {} times", looks.get()))
        })
        .await
        .unwrap_err();
        assert!(looks.get() > 1, "looked {} times", looks.get());
        assert_eq!(error.last_seen, format!("only waves, {} times", looks.get()));
        assert!(error.to_string().starts_with("a ship: not within 200ms"), "{error}");
    }

    #[tokio::test]
    async fn a_look_that_hangs_does_not_outlast_the_limit() {
        let error = wait_until("an answer", Duration::from_millis(100), pending::<Result<(), String>>)
            .await
            .unwrap_err();
        assert!(error.last_seen.contains("did not return"), "{error}");
    }
}
