//! Tools that keep notes under keys, and no more of them in a minute than the operator's settings allow.

use std::time::{Duration, UNIX_EPOCH};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolsrv::settings::Loaded;
use toolsrv::{Call, Error, kv, tool};

#[cfg(test)]
mod tests;

/// What the operator sets.
#[derive(Clone, Deserialize, JsonSchema)]
struct Settings {
    /// How many notes all callers together may add in a minute.
    #[serde(default = "thirty")]
    #[schemars(range(min = 1, max = 100_000))]
    per_minute: u32,
}

fn thirty() -> u32 {
    30
}

static SETTINGS: Loaded<Settings> = Loaded::new();

fn prepare() {
    SETTINGS.load();
}

#[derive(Deserialize, JsonSchema)]
struct Text {
    /// What is to be kept.
    #[schemars(length(min = 1, max = 10_000))]
    text: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Note {
    /// By which it is read and removed. Those of later notes sort behind those of earlier ones.
    id: String,
    text: String,
}

/// Keep a note, and return it with its id. It fails with too_many where too many notes were added in this minute.
#[tool(
    title = "Add a note",
    annotations(read_only = false, destructive = false, idempotent = false, open_world = false),
    example(arguments = r#"{"text": "Water the plants."}"#)
)]
fn add(call: &Call, text: Text) -> Result<Note, Error> {
    let now = toolsrv::now().duration_since(UNIX_EPOCH)?;
    admit(call, now.as_secs() / 60)?;
    let id = format!("{:012x}-{:08x}", now.as_millis(), toolsrv::random::below(1 << 32));
    let note = Note { id, text: text.text };
    kv::create(call, key(&note.id), &note.text, None)?;
    Ok(note)
}

/// Counts a note of this minute, or refuses it. The count goes away by itself.
fn admit(call: &Call, minute: u64) -> Result<(), Error> {
    let most = SETTINGS.get(call)?.per_minute;
    kv::change(call, format!("minute/{minute}"), Duration::from_secs(120), |entry| {
        let count: u32 = match entry {
            Some(entry) => String::from_utf8(entry.value)?.parse()?,
            None => 0,
        };
        if count >= most {
            let message =
                format!("{most} notes were added in this minute, and no more are allowed: try again in the next.");
            return Err(Error::new(message).code("too_many").status(429));
        }
        Ok((count + 1).to_string().into_bytes())
    })?;
    Ok(())
}

fn key(id: &str) -> String {
    format!("note/{id}")
}

#[derive(Deserialize, JsonSchema)]
struct Page {
    /// The id after which the page begins; the first page without it.
    #[serde(default)]
    #[schemars(length(max = 100))]
    after: String,
    /// How many notes at most.
    #[serde(default = "twenty")]
    #[schemars(range(min = 1, max = 100))]
    limit: usize,
}

fn twenty() -> usize {
    20
}

#[derive(Serialize, JsonSchema)]
struct Notes {
    notes: Vec<Note>,
    /// Whether more come after the last.
    more: bool,
}

/// List the notes, the oldest first.
#[tool(title = "List notes", annotations(read_only = true, open_world = false), example(arguments = "{}"))]
fn list(call: &Call, page: Page) -> Result<Notes, Error> {
    let after = if page.after.is_empty() { String::new() } else { key(&page.after) };
    let found = kv::list(call, "note/", after, page.limit)?;
    let mut notes = Vec::with_capacity(found.keys.len());
    for name in &found.keys {
        // One that was removed since it was listed is left out.
        if let (Some(id), Some(entry)) = (name.strip_prefix("note/"), kv::get(call, name)?) {
            notes.push(Note { id: id.into(), text: String::from_utf8(entry.value)? });
        }
    }
    Ok(Notes { notes, more: found.more })
}

#[derive(Deserialize, JsonSchema)]
struct Id {
    /// As add and list return it.
    #[schemars(length(min = 1, max = 100))]
    id: String,
}

/// Remove a note, and return whether there was one of that id.
#[tool(
    title = "Remove a note",
    annotations(read_only = false, destructive = true, idempotent = true, open_world = false),
    example(arguments = r#"{"id": "none"}"#, result = "false")
)]
fn remove(call: &Call, id: Id) -> Result<bool, Error> {
    Ok(kv::delete(call, key(&id.id))?)
}

toolsrv::export! {
    namespace: "notes",
    needs: { kv: true, settings: Settings },
    tools: [add, list, remove],
    warm: prepare,
}
