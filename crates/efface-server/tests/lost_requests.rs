//! Requests that must not be lost, and refusals that must not be told as done: models that are busy,
//! away or on a full disk at the moment of an approval, rows that are learned in between, and models
//! that refuse, in every dialect.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use common::office::Office;
use common::receiver::CallbackReceiver;
use common::wire::{RunningServer, status};
use common::{Asked, ask, fit_houses, get, post, settings, speaking_opendsr};
use efface_engine::{Engine, ForgetOptions, ForgetRequest, RowSelection};
use efface_server::{CallbackSettings, Server, ServerSettings, WorkPlace};
use serde_json::{Value, json};

const ERASE: &str = "/v1/models/houses/erasures";

/// An obstacle to a change at the moment of an approval, which goes away later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Obstacle {
    /// Another process changes the model.
    Busy,
    /// The disk has no room for the journal of the model.
    FullDisk,
    /// The key that signs is away.
    NoKey,
}

/// An obstacle until it is removed.
enum Obstructed {
    Busy(rusqlite::Connection),
    FullDisk(PathBuf),
    NoKey(PathBuf),
}

impl Obstacle {
    fn put(self, folder: &Path) -> Obstructed {
        match self {
            Self::Busy => {
                let holder = rusqlite::Connection::open(folder.join("houses.efface")).unwrap();
                holder.execute_batch("BEGIN IMMEDIATE").unwrap();
                Obstructed::Busy(holder)
            }
            Self::FullDisk => {
                let journal = folder.join("houses.efface-journal");
                let _ = std::fs::remove_file(&journal);
                std::fs::create_dir(&journal).unwrap();
                Obstructed::FullDisk(journal)
            }
            Self::NoKey => {
                let key = folder.join("houses.efface.key");
                std::fs::rename(&key, key.with_extension("away")).unwrap();
                Obstructed::NoKey(key)
            }
        }
    }
}

impl Obstructed {
    fn remove(self) {
        match self {
            Self::Busy(holder) => drop(holder),
            Self::FullDisk(journal) => std::fs::remove_dir(journal).unwrap(),
            Self::NoKey(key) => std::fs::rename(key.with_extension("away"), &key).unwrap(),
        }
    }
}

/// Waits until no request is open.
async fn none_open(router: &Router, token: &str) {
    let waiting = async {
        while get(router, "/v1/erasures", Some(token)).await.json()["erasures"] != json!([]) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waiting)
        .await
        .expect("a request is never done");
}

async fn rows(router: &Router, token: Option<&str>) -> u64 {
    let model = get(router, "/v1/models/houses", token).await.json();
    model["rows"].as_u64().unwrap()
}

/// A server that follows its folder for as long as the runtime lives.
async fn serving(settings: ServerSettings) -> Router {
    let server = Server::start(settings).await.unwrap();
    let router = server.router();
    tokio::spawn(server.run(std::future::pending()));
    router
}

#[tokio::test]
async fn an_approved_erasure_is_done_whatever_is_in_the_way_when_it_is_approved() {
    for obstacle in [Obstacle::Busy, Obstacle::FullDisk, Obstacle::NoKey] {
        for dies in [false, true] {
            let mut office = Office::open(3).await;
            let (settings, folder) = (office.settings.clone(), office.folder.path().to_owned());
            let (ann, bob) = (office.ann.clone(), office.bob.clone());
            let body = json!({"subject": "o1", "callback_url": office.url});
            // A runtime of its own, with which all tasks of a server die.
            let life = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build()
                .unwrap();
            let approving = life.spawn(async move {
                let router = serving(settings).await;
                let held = post(&router, ERASE, &body, Some("big"), Some(&ann)).await;
                assert_eq!(held.json()["status"], "awaiting_approval");
                let obstructed = obstacle.put(&folder);
                let approval = "/v1/erasures/big/approval";
                let nothing = json!({});
                let approved = post(&router, approval, &nothing, None, Some(&bob)).await;
                (router, obstructed, approved)
            });
            let (mut router, obstructed, approved) = approving.await.unwrap();
            let told = approved.json();
            assert_eq!(approved.status.as_u16(), 202, "{obstacle:?}: {told}");
            assert_eq!(told["status"], "running", "{obstacle:?}");
            assert_eq!(office.inbox(), 1, "{obstacle:?}: the request is lost");
            assert!(office.told().is_empty(), "{obstacle:?}");
            if dies {
                drop(router);
                life.shutdown_background();
                router = serving(office.settings.clone()).await;
                let open = get(&router, "/v1/erasures/big", Some(&office.ann)).await;
                assert_eq!(open.json()["status"], "running", "{obstacle:?}");
                obstructed.remove();
                none_open(&router, &office.ann).await;
            } else {
                obstructed.remove();
                none_open(&router, &office.ann).await;
                life.shutdown_background();
            }
            assert_eq!(rows(&router, Some(&office.ann)).await, 36, "{obstacle:?}");
            let told = BTreeSet::from([("erasure.done".to_owned(), "big".to_owned())]);
            assert_eq!(office.told(), told, "{obstacle:?}");
            assert_eq!(office.inbox(), 0);
        }
    }
}

#[tokio::test]
async fn a_disk_that_cannot_write_the_approval_down_leaves_the_request_waiting() {
    let office = Office::open(3).await;
    let router = Server::start(office.settings.clone())
        .await
        .unwrap()
        .router();
    let body = json!({"subject": "o1"});
    post(&router, ERASE, &body, Some("big"), Some(&office.ann)).await;
    // A file lies in the place of the folder.
    let inbox = office.folder.path().join("inbox");
    std::fs::rename(&inbox, inbox.with_extension("away")).unwrap();
    std::fs::write(&inbox, "").unwrap();
    let approval = "/v1/erasures/big/approval";
    let failed = post(&router, approval, &json!({}), None, Some(&office.bob)).await;
    assert_eq!(failed.status.as_u16(), 503, "{}", failed.json());
    std::fs::remove_file(&inbox).unwrap();
    std::fs::rename(inbox.with_extension("away"), &inbox).unwrap();
    let approved = post(&router, approval, &json!({}), None, Some(&office.bob)).await;
    assert_eq!(approved.json()["status"], "done");
    assert_eq!(rows(&router, Some(&office.ann)).await, 36);
}

#[tokio::test]
async fn an_approved_erasure_of_a_model_that_is_away_is_done_when_it_is_back() {
    let mut office = Office::open(3).await;
    fit_houses(office.folder.path(), "other", 12);
    let server = RunningServer::start(office.settings.clone()).await;
    let send = async |line: &str, who: &str, key: &str, body: Value| {
        let head = format!(
            "{line} HTTP/1.1\r\nAuthorization: Bearer {who}\r\nContent-Type: application/json\r\nIdempotency-Key: {key}"
        );
        server.ask(&head, body.to_string()).await
    };
    let show = async |line: &str| send(line, &office.ann, "none", json!({})).await;
    let until = async |line: &str, holds: &str| {
        let asking = async { while !show(line).await.contains(holds) {} };
        let found = tokio::time::timeout(Duration::from_secs(60), asking).await;
        assert!(found.is_ok(), "{line} never gave {holds}");
    };
    let body = json!({"subject": "o1", "callback_url": office.url});
    let held = send(&format!("POST {ERASE}"), &office.ann, "big", body).await;
    assert_eq!(status(&held), Some(202), "{held}");

    let model = office.folder.path().join("houses.efface");
    std::fs::rename(&model, model.with_extension("away")).unwrap();
    until("GET /v1/models/houses", "404 Not Found").await;
    let approved = send(
        "POST /v1/erasures/big/approval",
        &office.bob,
        "none",
        json!({}),
    )
    .await;
    assert_eq!(status(&approved), Some(202), "{approved}");
    until("GET /v1/erasures/big", "\"running\"").await;
    std::fs::rename(model.with_extension("away"), &model).unwrap();
    until("GET /v1/erasures/big", "\"done\"").await;
    until("GET /v1/models/houses", "\"rows\":36").await;
    let came = office.receiver.next().await;
    assert!(came.body.contains("erasure.done"), "{}", came.body);
    server.stop().await;
}

#[tokio::test]
async fn what_one_model_has_erased_the_others_erase_as_well() {
    let office = Office::open(100).await;
    fit_houses(office.folder.path(), "other", 40);
    let router = Server::start(office.settings.clone())
        .await
        .unwrap()
        .router();
    let busy = Obstacle::Busy.put(office.folder.path());
    let body = json!({"subject": "o1"});
    // The number of rows is looked at without a lock; the change is where the model is busy.
    let begun = post(&router, "/v1/erasures", &body, Some("k"), Some(&office.ann)).await;
    assert_eq!(begun.status.as_u16(), 202, "{}", begun.json());
    busy.remove();
    none_open(&router, &office.ann).await;
    let asked = get(&router, "/v1/erasures/k", Some(&office.ann))
        .await
        .json();
    assert_eq!(asked["models"].as_array().unwrap().len(), 2, "{asked}");
    assert_eq!(rows(&router, Some(&office.ann)).await, 36);
}

#[tokio::test]
async fn the_rows_that_need_approval_are_counted_when_the_change_is_made() {
    // Requests whose rows a learn in between changes: a list with an unknown id, a person of whom
    // nothing is known, and a person in all models.
    let bodies = [
        (ERASE, json!({"rows": ["h0", "h1", "h2", "h3", "new0"]})),
        (ERASE, json!({"subject": "zoe", "allow_missing": true})),
        ("/v1/erasures", json!({"subject": "o1"})),
    ];
    for (path, body) in bodies {
        let mut outcomes = BTreeSet::new();
        // A learn at every step of the request: all work is done in turn on this thread.
        for step in 0..24 {
            let mut office = Office::open(4).await;
            office.settings.work = WorkPlace::InTurn;
            let router = Server::start(office.settings.clone())
                .await
                .unwrap()
                .router();
            let names = [("new0", "o1"), ("new1", "zoe"), ("new2", "zoe")];
            let more = [("new3", "zoe"), ("new4", "zoe"), ("new5", "zoe")];
            let joining: Vec<Value> = names.iter().chain(&more)
                .map(|(house, owner)| {
                    json!({"house": house, "owner": owner, "rooms": 3, "area": 50, "price": 200})
                })
                .collect();
            let joining = json!({ "rows": joining });
            let learning = async {
                for _ in 0..step {
                    tokio::task::yield_now().await;
                }
                post(
                    &router,
                    "/v1/models/houses/rows",
                    &joining,
                    None,
                    Some(&office.bob),
                )
                .await
            };
            let erasing = post(&router, path, &body, Some("k"), Some(&office.ann));
            let (erased, learned) = tokio::join!(erasing, learning);
            // Whoever was erased just before does not come back.
            let joined = match learned.status.as_u16() {
                200 => 6,
                _ => {
                    assert_eq!(learned.code(), "must_not_come_back");
                    0
                }
            };
            let left = rows(&router, Some(&office.ann)).await;
            let gone = 40 + joined - left;
            let waits = erased.json()["status"] == "awaiting_approval";
            let told = erased.json();
            assert!(
                gone <= 4,
                "{gone} rows were erased without approval: {path} {body} {step} {told}"
            );
            assert!(!waits || gone == 0, "{path} {body} {step}: {told}");
            outcomes.insert((erased.status.as_u16(), waits, gone));
            if waits {
                let approval = "/v1/erasures/k/approval";
                let approved = post(&router, approval, &json!({}), None, Some(&office.bob)).await;
                let told = approved.json();
                assert_eq!(approved.status.as_u16(), 200, "{told}");
                assert!(told["models"][0]["forgotten"].as_u64() > Some(3), "{told}");
            }
        }
        assert!(
            outcomes.len() > 1,
            "no learn met the request: {path} {outcomes:?}"
        );
    }
}

#[tokio::test]
async fn an_erasure_takes_out_the_rows_of_its_preview_or_none() {
    let folder = tempfile::tempdir().unwrap();
    fit_houses(folder.path(), "houses", 40);
    fit_houses(folder.path(), "other", 40);
    let router = Server::start(settings(folder.path()))
        .await
        .unwrap()
        .router();
    let look = async |path: &str, body: &Value| {
        let mut body = body.clone();
        body["dry_run"] = json!(true);
        let told = post(&router, path, &body, None, None).await.json();
        let models = told["models"].as_array().unwrap().iter();
        let digest = |model: &Value| {
            (
                model["model"].as_str().unwrap().to_owned(),
                model["preview"].clone(),
            )
        };
        Value::Object(models.map(digest).collect())
    };
    let send = async |path: &str, body: &Value, preview: &Value, key: &str| {
        let mut body = body.clone();
        body["preview"] = preview.clone();
        post(&router, path, &body, Some(key), None).await
    };
    let refused = |answer: &Asked| {
        assert_eq!(
            (answer.status.as_u16(), answer.code().as_str()),
            (409, "rows_changed")
        );
    };
    let o1 = json!({"subject": "o1"});
    let preview = look(ERASE, &o1).await;
    // The preview of one person does not let another one go, and no preview is one of nothing.
    refused(&send(ERASE, &json!({"subject": "o2"}), &preview, "a").await);
    refused(&send(ERASE, &json!({"rows": ["h4"]}), &preview, "b").await);
    refused(&send(ERASE, &o1, &json!({}), "c").await);
    refused(
        &send(
            ERASE,
            &o1,
            &look("/v1/models/other/erasures", &o1).await,
            "d",
        )
        .await,
    );
    assert_eq!(rows(&router, None).await, 40);
    // A row that joins, one that is corrected, and one that leaves.
    let row =
        json!({"rows": [{"house": "new", "owner": "o1", "rooms": 4, "area": 77, "price": 300}]});
    post(&router, "/v1/models/houses/rows", &row, None, None).await;
    refused(&send(ERASE, &o1, &preview, "e").await);
    let preview = look(ERASE, &o1).await;
    let amended =
        Request::patch("/v1/models/houses/rows").header("content-type", "application/json");
    ask(&router, amended.body(Body::from(row.to_string())).unwrap()).await;
    refused(&send(ERASE, &o1, &preview, "f").await);
    let preview = look(ERASE, &o1).await;
    post(&router, ERASE, &json!({"rows": ["new"]}), None, None).await;
    refused(&send(ERASE, &o1, &preview, "g").await);
    // Other people may come and go.
    let preview = look(ERASE, &o1).await;
    post(&router, ERASE, &json!({"subject": "o5"}), None, None).await;
    let done = send(ERASE, &o1, &preview, "h").await.json();
    assert_eq!(done["models"][0]["forgotten"], 4, "{done}");
    // Sent again it is the same request, although its rows are gone.
    let again = send(ERASE, &o1, &preview, "h").await.json();
    assert_eq!(again["models"][0]["receipt"], done["models"][0]["receipt"]);
    // In all models, each model keeps to its own preview.
    let o3 = json!({"subject": "o3"});
    let preview = look("/v1/erasures", &o3).await;
    post(&router, ERASE, &json!({"rows": ["h12"]}), None, None).await;
    let told = send("/v1/erasures", &o3, &preview, "i").await;
    assert_eq!(
        (told.status.as_u16(), &told.json()["status"]),
        (207, &json!("failed"))
    );
    let models = told.json()["models"].clone();
    assert_eq!(models[0]["problem"]["code"], "rows_changed", "{models}");
    assert_eq!(models[1]["forgotten"], 4, "{models}");
}

#[tokio::test]
async fn a_model_that_refuses_is_told_as_a_failure_in_every_dialect() {
    let folder = tempfile::tempdir().unwrap();
    // The only person of this model, who has other rows in the second one.
    fit_houses(folder.path(), "houses", 4);
    fit_houses(folder.path(), "other", 40);
    let (mut settings, _) = speaking_opendsr(folder.path(), false);
    let receiver = CallbackReceiver::start(&["HTTP/1.1 200 OK"]).await;
    let host = format!("http://127.0.0.1:{}", receiver.port);
    let mut callbacks = CallbackSettings::new(vec![host.parse().unwrap()]);
    callbacks.allow_private = true;
    settings.callbacks = Some(callbacks);
    let router = Server::start(settings).await.unwrap().router();
    let callback = |request: &str| {
        let outbox = std::fs::read_dir(folder.path().join("outbox")).unwrap();
        let bodies = outbox.map(|entry| {
            let delivery = std::fs::read(entry.unwrap().path()).unwrap();
            let delivery: Value = serde_json::from_slice(&delivery).unwrap();
            serde_json::from_str::<Value>(delivery["body"].as_str().unwrap()).unwrap()
        });
        let mut found = bodies
            .filter(|body| body["data"]["id"] == request || body["subject_request_id"] == request);
        found.next().unwrap()
    };
    let o0 = json!({"subject": "o0", "callback_url": format!("{host}/")});

    // One model, answered at once, and the same request again.
    for _ in 0..2 {
        let one = post(&router, ERASE, &o0, Some("one"), None).await;
        assert_eq!((one.status.as_u16(), one.code().as_str()), (409, "refused"));
        let shown = get(&router, "/v1/erasures/one", None).await.json();
        assert_eq!(shown["status"], "failed", "{shown}");
        assert_eq!(shown["models"][0]["outcome"], "refused", "{shown}");
        let receipt = shown["models"][0]["receipt"]["id"].as_str().unwrap();
        assert!(one.json()["detail"].as_str().unwrap().contains(receipt));
    }
    let told = callback("one");
    assert_eq!(told["type"], "erasure.failed", "{told}");
    assert_eq!(told["data"]["models"][0]["problem"], "refused", "{told}");
    assert!(told["data"]["models"][0]["claim"].is_null(), "{told}");

    // All models, of which one refuses.
    let all = post(&router, "/v1/erasures", &o0, Some("all"), None).await;
    assert_eq!(all.status.as_u16(), 207, "{}", all.json());
    assert_eq!(all.json()["status"], "failed");
    let models = all.json()["models"].clone();
    assert_eq!(models[0]["problem"]["code"], "refused", "{models}");
    assert!(
        models[0]["claim"].is_null() && models[0]["bound"].is_null(),
        "{models}"
    );
    assert_eq!(models[1]["outcome"], "erased", "{models}");
    assert_eq!(
        get(&router, "/v1/erasures/all", None).await.json()["status"],
        "failed"
    );
    assert_eq!(callback("all")["type"], "erasure.failed");

    // OpenDSR, which knows no failure.
    let id = "a7551968-d5d6-44b2-9831-815ac9017798";
    let request = json!({
        "subject_request_id": id,
        "subject_request_type": "erasure",
        "submitted_time": "2018-10-02T15:00:00Z",
        "subject_identities": [{"identity_type": "email", "identity_value": "o0", "identity_format": "raw"}],
        "status_callback_urls": [format!("{host}/dsr")],
    });
    let made = post(&router, "/opendsr/v2/requests", &request, None, None).await;
    assert_eq!(made.status.as_u16(), 201, "{}", made.json());
    none_open(&router, "").await;
    for path in [
        "/opendsr/v2/requests",
        "/opendsr/v2/status",
        "/opendsr/v1/opengdpr_requests",
    ] {
        let shown = get(&router, &format!("{path}/{id}"), None).await.json();
        assert_eq!(shown["request_status"], "cancelled", "{path}: {shown}");
    }
    assert_eq!(callback(id)["request_status"], "cancelled");

    // Mixpanel's form.
    let body = json!({"distinct_ids": ["o0"]});
    let made = post(
        &router,
        "/data-deletions/v3.0?token=houses",
        &body,
        None,
        None,
    )
    .await;
    let task = made.json()["results"]["task_id"]
        .as_str()
        .unwrap()
        .to_owned();
    none_open(&router, "").await;
    let shown = get(&router, &format!("/data-deletions/v3.0/{task}"), None)
        .await
        .json();
    assert_eq!(shown["results"]["status"], "FAILURE", "{shown}");
    assert_eq!(rows(&router, None).await, 4, "nothing was erased");

    // The refusal of an approved request is heard by whoever asked, too.
    let mut office = Office::open(1).await;
    fit_houses(office.folder.path(), "few", 4);
    let router = Server::start(office.settings.clone())
        .await
        .unwrap()
        .router();
    let path = "/v1/models/few/erasures";
    // One that no model can do, and one that can be done when it is made, and not when it is
    // approved.
    let bodies = [
        ("few", json!({"subject": "o0"})),
        ("two", json!({"rows": ["h0", "h1"]})),
    ];
    for (key, mut body) in bodies {
        body["callback_url"] = json!(office.url);
        let held = post(&router, path, &body, Some(key), Some(&office.ann)).await;
        let told = held.json();
        assert_eq!(told["status"], "awaiting_approval", "{told}");
    }
    let approve = async |key: &str| {
        let approval = format!("/v1/erasures/{key}/approval");
        let approved = post(&router, &approval, &json!({}), None, Some(&office.bob)).await;
        assert_eq!(approved.code(), "refused", "{}", approved.json());
    };
    approve("few").await;
    let mut engine = Engine::open(&office.folder.path().join("few.efface")).unwrap();
    let rest = RowSelection::Ids(vec!["h2".into(), "h3".into()]);
    engine
        .forget(&ForgetRequest::new(rest), &ForgetOptions::default())
        .unwrap();
    approve("two").await;
    let told = office.told();
    for name in ["few", "two"] {
        let failed = ("erasure.failed".to_owned(), name.to_owned());
        assert!(told.contains(&failed), "{name}: {told:?}");
    }
}

#[tokio::test]
async fn a_request_that_comes_twice_at_once_hears_the_same_twice() {
    let folder = tempfile::tempdir().unwrap();
    fit_houses(folder.path(), "houses", 40);
    let mut settings = settings(folder.path());
    // Requests of one step become one group.
    settings.work = WorkPlace::InTurn;
    let router = Server::start(settings).await.unwrap().router();
    for (row, status) in [("unknown", 404), ("h1", 200), ("h1", 410)] {
        let body = json!({"rows": [row]});
        let key = format!("{row}-{status}");
        let one = post(&router, ERASE, &body, Some(&key), None);
        let two = post(&router, ERASE, &body, Some(&key), None);
        let (one, two) = tokio::join!(one, two);
        for answer in [one, two] {
            assert_eq!(answer.status.as_u16(), status, "{}", answer.json());
        }
    }
}

#[tokio::test]
async fn a_person_is_not_told_to_be_erased_everywhere_while_a_model_cannot_be_opened() {
    let office = Office::open(100).await;
    fit_houses(office.folder.path(), "other", 40);
    let damaged = office.folder.path().join("other.efface");
    let whole = std::fs::read(&damaged).unwrap();
    std::fs::write(&damaged, &whole[..whole.len() / 2]).unwrap();
    std::fs::write(office.folder.path().join("note.efface"), "not a model").unwrap();
    let mut settings = office.settings.clone();
    settings.approval_above = None;
    let server = RunningServer::start(settings).await;
    let head = format!("HTTP/1.1\r\nAuthorization: Bearer {}", office.ann);
    let erase =
        format!("POST /v1/erasures {head}\r\nContent-Type: application/json\r\nIdempotency-Key: k");
    let begun = server
        .ask(&erase, json!({"subject": "o1"}).to_string())
        .await;
    assert_eq!(status(&begun), Some(202), "{begun}");
    // The copy that is put back is another file.
    std::fs::write(damaged.with_extension("copy"), &whole).unwrap();
    std::fs::rename(damaged.with_extension("copy"), &damaged).unwrap();
    let asking = async {
        loop {
            let shown = server.ask(&format!("GET /v1/erasures/k {head}"), "").await;
            if shown.contains("\"done\"") {
                return shown;
            }
        }
    };
    let shown = tokio::time::timeout(Duration::from_secs(60), asking)
        .await
        .unwrap();
    assert!(
        shown.contains("houses") && shown.contains("other"),
        "{shown}"
    );
    server.stop().await;
}
