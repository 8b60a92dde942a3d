//! An office of two officers over one model, with callbacks.

use std::collections::BTreeSet;

use efface_server::{CallbackSettings, Scope, ServerSettings};
use serde_json::Value;

use super::receiver::CallbackReceiver;
use super::{fit_houses, settings, token};

/// A folder with a model of 40 rows, two officers, and callbacks to a receiver.
pub(crate) struct Office {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) settings: ServerSettings,
    pub(crate) ann: String,
    pub(crate) bob: String,
    pub(crate) receiver: CallbackReceiver,
    pub(crate) url: String,
}

impl Office {
    /// Erasures of more rows than this need the second officer.
    pub(crate) async fn open(approval_above: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fit_houses(folder.path(), "houses", 40);
        let scopes = [Scope::Erase, Scope::Audit, Scope::Learn];
        let ann = token(folder.path(), &scopes, None);
        let bob = token(folder.path(), &scopes, None);
        let receiver = CallbackReceiver::start(&["HTTP/1.1 200 OK"]).await;
        let host = format!("http://127.0.0.1:{}", receiver.port);
        let mut settings = settings(folder.path());
        let mut callbacks = CallbackSettings::new(vec![host.parse().unwrap()]);
        callbacks.allow_private = true;
        settings.callbacks = Some(callbacks);
        settings.tokens = Some(folder.path().join("tokens.json"));
        settings.approval_above = Some(approval_above);
        // Tests ask without a pause.
        settings.limits.requests_per_second = f64::MAX;
        Self {
            folder,
            settings,
            ann,
            bob,
            receiver,
            url: format!("{host}/"),
        }
    }

    /// The callbacks that wait in the outbox or have come, as their event and request.
    pub(crate) fn told(&mut self) -> BTreeSet<(String, String)> {
        // The outbox is read first: a delivery that is no longer in it has come.
        let mut bodies: Vec<String> = Vec::new();
        let outbox = std::fs::read_dir(self.folder.path().join("outbox"));
        for entry in outbox.into_iter().flatten() {
            // A delivery that has come is overwritten with zeros and removed.
            let bytes = std::fs::read(entry.unwrap().path()).unwrap_or_default();
            if let Ok(delivery) = serde_json::from_slice::<Value>(&bytes) {
                bodies.push(delivery["body"].as_str().unwrap().to_owned());
            }
        }
        while let Some(came) = self.receiver.try_next() {
            bodies.push(came.body);
        }
        let event = |body: String| {
            let event: Value = serde_json::from_str(&body).unwrap();
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            (text(&event["type"]), text(&event["data"]["id"]))
        };
        bodies.into_iter().map(event).collect()
    }

    /// The requests in the inbox.
    pub(crate) fn inbox(&self) -> usize {
        let inbox = std::fs::read_dir(self.folder.path().join("inbox"));
        inbox.map_or(0, Iterator::count)
    }
}
