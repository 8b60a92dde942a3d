//! The way of a request, simulated by seeds: servers that die between any two steps, clients that
//! hang up, disks that are full, clocks that jump forward and back, receivers that fail or never
//! answer. Whatever happened, what was acknowledged is there once, is told, and nothing is left
//! over; tokens end by the clock.
//!
//! All but the delivery of callbacks runs on one thread, in turn, so that a seed takes the same way
//! every time. A seed that fails is named; `EFFACE_SEED=7 cargo test -p efface-server --test
//! simulation` plays it again, step by step the same.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

use axum::Router;
use common::receiver::CallbackReceiver;
use common::wire::RunningServer;
use common::{Asked, fit_houses, get, post, settings, token};
use efface_server::{
    CallbackSettings, Scope, Server, ServerSettings, TokenGrant, TokenStore, WorkPlace,
};
use serde_json::{Value, json};

const ROWS: usize = 80;

/// Draws that follow from a seed.
struct SeededDice(u64);

impl SeededDice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// What the clients know.
struct SimulatedWorld {
    dice: SeededDice,
    settings: ServerSettings,
    url: String,
    /// The token of all requests, and one that ends after a day.
    lasting: String,
    passing: String,
    passing_ends: u64,
    next_row: usize,
    /// Receipts of requests that were answered by 200, by key.
    acknowledged: BTreeMap<String, String>,
    /// Keys whose clients heard nothing, or a failure.
    unsure: BTreeSet<String>,
    /// What happened, a line a step.
    steps: Vec<String>,
    fault: PlantedFault,
}

/// What is wrong with the machine on purpose, to see whether the simulation finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlantedFault {
    Nothing,
    /// A disk that now and then loses a file when the server dies, although it said that the file
    /// was written.
    ForgetfulDisk,
}

impl SimulatedWorld {
    fn body(&self, key: &str) -> Value {
        json!({"rows": [key.trim_start_matches("key-")], "callback_url": self.url})
    }

    fn heard(&mut self, key: &str, answer: &Asked) {
        self.steps.push(format!("{key} {}", answer.status.as_u16()));
        if answer.status.as_u16() == 200 {
            let receipt = answer.json()["models"][0]["receipt"]["id"]
                .as_str()
                .unwrap()
                .to_owned();
            if let Some(before) = self.acknowledged.insert(key.to_owned(), receipt.clone()) {
                assert_eq!(before, receipt, "{key} had a second effect");
            }
            self.unsure.remove(key);
        } else {
            // A model that another life still holds, or a disk that is full; never a refusal.
            assert!(
                answer.status.is_server_error() || answer.status.as_u16() == 202,
                "{key}: {}",
                answer.json()
            );
            self.unsure.insert(key.to_owned());
        }
    }

    /// One server from its start to its death: its tasks end wherever they are.
    fn live(&mut self) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let router = Server::start(self.settings.clone()).await.unwrap().router();
            for _ in 0..=self.dice.below(5) {
                self.step(&router).await;
            }
        });
        runtime.shutdown_background();
        self.steps.push("the server dies".into());
        if self.fault == PlantedFault::ForgetfulDisk && self.dice.below(8) == 0 {
            let mut kept: Vec<_> = std::fs::read_dir(self.settings.folder.join("outbox"))
                .map_or_else(
                    |_| Vec::new(),
                    |entries| entries.map(|entry| entry.unwrap().path()).collect(),
                );
            kept.sort();
            if let Some(file) = kept.pop() {
                std::fs::remove_file(file).unwrap();
            }
        }
    }

    /// Clients that heard nothing ask again, until they hear that it is done. Then rows, requests
    /// and callbacks agree.
    async fn settle(&mut self) {
        let router = Server::start(self.settings.clone()).await.unwrap().router();
        let lasting = self.lasting.clone();
        let asking = async {
            while let Some(key) = self.unsure.first().cloned() {
                let path = "/v1/models/houses/erasures";
                let answer =
                    post(&router, path, &self.body(&key), Some(&key), Some(&lasting)).await;
                self.heard(&key, &answer);
                tokio::task::yield_now().await;
            }
            while get(&router, "/v1/erasures", Some(&lasting)).await.json()["erasures"] != json!([])
            {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), asking)
            .await
            .expect("a request is never done");
        let rows = get(&router, "/v1/models/houses", Some(&lasting))
            .await
            .json()["rows"]
            .as_u64()
            .unwrap() as usize;
        assert_eq!(
            rows,
            ROWS - self.acknowledged.len(),
            "rows and requests do not agree"
        );
        let waiting = self.waiting_callbacks();
        for key in self.acknowledged.keys() {
            assert!(waiting.contains(key), "nobody will be told of {key}");
        }
    }

    /// The requests that somebody will be told of.
    fn waiting_callbacks(&self) -> BTreeSet<String> {
        let entries = std::fs::read_dir(self.settings.folder.join("outbox")).unwrap();
        let told = entries.map(|entry| {
            let delivery: Value =
                serde_json::from_slice(&std::fs::read(entry.unwrap().path()).unwrap()).unwrap();
            let event: Value = serde_json::from_str(delivery["body"].as_str().unwrap()).unwrap();
            event["data"]["id"].as_str().unwrap().to_owned()
        });
        told.collect()
    }

    /// Somebody sets the clock.
    fn jump(&mut self) {
        let hour = 3_600_000;
        let jumps = [10_000, hour, 72 * hour, 9000 * hour];
        let length = jumps[self.dice.below(4) as usize];
        self.settings.clock.jump(if self.dice.below(2) == 0 {
            length
        } else {
            -length
        });
    }

    async fn step(&mut self, router: &Router) {
        let path = "/v1/models/houses/erasures";
        let choice = self.dice.below(13);
        if choice >= 11 {
            self.jump();
            self.steps.push("the clock jumps".into());
            let asked = get(router, "/v1/models", Some(&self.passing))
                .await
                .status
                .as_u16();
            let is_over = self.settings.clock.seconds() >= self.passing_ends;
            assert_eq!(
                asked,
                if is_over { 401 } else { 200 },
                "a token ends by the clock"
            );
            return;
        }
        if choice >= 9 {
            // Somebody sends an old request again.
            let known: Vec<String> = self
                .acknowledged
                .keys()
                .chain(&self.unsure)
                .cloned()
                .collect();
            if known.is_empty() {
                return;
            }
            let key = known[self.dice.below(known.len() as u64) as usize].clone();
            let answer = post(
                router,
                path,
                &self.body(&key),
                Some(&key),
                Some(&self.lasting),
            )
            .await;
            return self.heard(&key, &answer);
        }
        if self.next_row >= ROWS - 10 {
            return;
        }
        let key = format!("key-h{}", self.next_row);
        self.next_row += 1;
        let body = self.body(&key);
        match choice {
            0..4 => {
                let answer = post(router, path, &body, Some(&key), Some(&self.lasting)).await;
                self.heard(&key, &answer);
            }
            4 | 5 => {
                // The client hangs up after a while, perhaps before the server has begun.
                let patience = self.dice.below(40);
                self.unsure.insert(key.clone());
                let asked = tokio::select! {
                    biased;
                    answer = post(router, path, &body, Some(&key), Some(&self.lasting)) => Some(answer),
                    () = yield_often(patience) => None,
                };
                match asked {
                    Some(answer) => self.heard(&key, &answer),
                    None => self.steps.push(format!("{key} hangs up")),
                }
            }
            _ => {
                // The disk has no room for one of the folders, or for the journal of the model.
                let place = ["inbox", "outbox", "houses.efface-journal"][choice as usize - 6];
                let place = self.settings.folder.join(place);
                let broken = FullDisk::of(&place);
                let answer = post(router, path, &body, Some(&key), Some(&self.lasting)).await;
                // A model that cannot be written acknowledges nothing.
                assert!(
                    choice != 8 || broken.had || answer.status.is_server_error(),
                    "{}",
                    answer.json()
                );
                self.heard(&key, &answer);
                broken.heal();
            }
        }
    }
}

async fn yield_often(times: u64) {
    for _ in 0..times {
        tokio::task::yield_now().await;
    }
}

/// A place where nothing can be written: a file lies in the place of a folder, or a folder in the
/// place of a journal.
struct FullDisk<'a> {
    place: &'a Path,
    had: bool,
}

impl<'a> FullDisk<'a> {
    fn of(place: &'a Path) -> Self {
        if place.extension().is_some() {
            // A journal that an earlier life left behind is not in the way: the model is whole only
            // with it.
            let had = std::fs::create_dir(place).is_err();
            return Self { place, had };
        }
        let had = std::fs::rename(place, place.with_extension("away")).is_ok();
        std::fs::write(place, "").unwrap();
        Self { place, had }
    }

    fn heal(self) {
        if self.place.extension().is_some() {
            if !self.had {
                std::fs::remove_dir(self.place).unwrap();
            }
            return;
        }
        std::fs::remove_file(self.place).unwrap();
        if self.had {
            std::fs::rename(self.place.with_extension("away"), self.place).unwrap();
        }
    }
}

fn passing_token(folder: &Path, ends: u64) -> String {
    let store = TokenStore::open(&folder.join("tokens.json")).unwrap();
    let grant = TokenGrant {
        name: "for a day".into(),
        scopes: vec![Scope::Audit],
        models: None,
        expires_at: Some(ends),
    };
    store.create(grant).unwrap().text.to_string()
}

/// What became of a seed.
#[derive(Debug, PartialEq, Eq)]
struct SimulatedRun {
    /// What happened, a line a step.
    steps: Vec<String>,
    /// What did not hold in the end.
    failure: Option<String>,
}

/// Eight servers that live and die by a seed, and one that finishes what is left, all in turn on
/// this thread. Then `deliver` is handed the world.
fn simulate(
    seed: u64,
    fault: PlantedFault,
    deliver: impl FnOnce(&mut SimulatedWorld),
) -> SimulatedRun {
    let folder = tempfile::tempdir().unwrap();
    fit_houses(folder.path(), "houses", ROWS);
    let mut settings = settings(folder.path());
    settings.work = WorkPlace::InTurn;
    // Somebody who listens is found when callbacks are delivered; until then the port is only a
    // name.
    let url = "http://127.0.0.1:9/";
    let mut callbacks = CallbackSettings::new(vec![url.trim_end_matches('/').parse().unwrap()]);
    callbacks.allow_private = true;
    callbacks.patience = Duration::from_millis(200);
    settings.callbacks = Some(callbacks);
    settings.tokens = Some(folder.path().join("tokens.json"));
    let passing_ends = settings.clock.seconds() + 86_400;
    let mut world = SimulatedWorld {
        dice: SeededDice(seed),
        lasting: token(folder.path(), &[Scope::Admin], None),
        passing: passing_token(folder.path(), passing_ends),
        settings,
        url: url.into(),
        passing_ends,
        next_row: 0,
        acknowledged: BTreeMap::new(),
        unsure: BTreeSet::new(),
        steps: Vec::new(),
        fault,
    };
    let failed = catch_unwind(AssertUnwindSafe(|| {
        for _ in 0..8 {
            world.live();
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(world.settle());
        runtime.shutdown_background();
        deliver(&mut world);
    }));
    let failure = failed.err().map(|panic| match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(other) => other
            .downcast_ref::<&str>()
            .map_or_else(|| "a panic".into(), |text| (*text).into()),
    });
    SimulatedRun {
        steps: world.steps,
        failure,
    }
}

/// A last server delivers, over sockets. Receivers that failed are called again when their wait is
/// over by the clock, which jumps; somebody who asks for one of the callbacks makes the server look
/// at the clock, as it does by itself every half minute.
fn deliver(world: &mut SimulatedWorld) {
    let outside = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    outside.block_on(async {
        let answers = [
            "",
            "HTTP/1.1 500 Oh",
            "",
            "HTTP/1.1 503 Oh",
            "HTTP/1.1 200 OK",
        ];
        let mut receiver = CallbackReceiver::start(&answers).await;
        readdress(&world.settings.folder.join("outbox"), receiver.port);
        let mut settings = world.settings.clone();
        settings.work = WorkPlace::Threads;
        // Asked again and again without a pause, a fast machine asks more often than a token may.
        settings.limits.requests_per_second = f64::MAX;
        let host = format!("http://127.0.0.1:{}", receiver.port);
        settings.callbacks.as_mut().unwrap().hosts = vec![host.parse().unwrap()];
        let server = RunningServer::start(settings).await;
        let as_admin = format!("HTTP/1.1\r\nAuthorization: Bearer {}", world.lasting);
        let mut told = BTreeSet::new();
        let telling = async {
            while told.len() < world.acknowledged.len() {
                world.jump();
                let list = server
                    .ask(&format!("GET /v1/callbacks {as_admin}"), "")
                    .await;
                let list: Value =
                    serde_json::from_str(list.split_once("\r\n\r\n").unwrap().1).unwrap();
                let tried = |callback: &&Value| callback["attempts"].as_u64() > Some(0);
                if let Some(callback) = list["callbacks"].as_array().unwrap().iter().find(tried) {
                    let id = callback["id"].as_str().unwrap();
                    server
                        .ask(&format!("POST /v1/callbacks/{id}/retry {as_admin}"), "")
                        .await;
                }
                while let Some(came) = receiver.try_next() {
                    let event: Value = serde_json::from_str(&came.body).unwrap();
                    told.insert(event["data"]["id"].as_str().unwrap().to_owned());
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(60), telling)
            .await
            .expect("a callback is lost");
        assert!(
            told.iter().eq(world.acknowledged.keys()),
            "callbacks and requests do not agree"
        );
        server.stop().await;
    });
    outside.shutdown_background();
    let left: Vec<_> = std::fs::read_dir(world.settings.folder.join("inbox"))
        .unwrap()
        .collect();
    assert!(left.is_empty(), "requests are left in the inbox");
}

/// Sends callbacks that wait to the port where somebody listens.
fn readdress(outbox: &Path, port: u16) {
    for entry in std::fs::read_dir(outbox).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(
            &path,
            text.replace("http://127.0.0.1:9/", &format!("http://127.0.0.1:{port}/")),
        )
        .unwrap();
    }
}

#[test]
fn whatever_happens_on_the_way_what_was_acknowledged_is_done_once_and_told() {
    let one = std::env::var("EFFACE_SEED")
        .ok()
        .map(|seed| seed.parse::<u64>().unwrap());
    let seeds = one.map_or(1..=8, |seed| seed..=seed);
    for seed in seeds {
        let run = simulate(seed, PlantedFault::Nothing, deliver);
        let steps = run.steps.join("\n");
        assert_eq!(
            run.failure, None,
            "EFFACE_SEED={seed} plays it again:\n{steps}"
        );
    }
}

#[test]
fn a_seed_that_fails_fails_again_in_the_same_way() {
    let run = |seed| simulate(seed, PlantedFault::ForgetfulDisk, |_| ());
    let failed = (1..=40)
        .map(|seed| (seed, run(seed)))
        .find(|(_, run)| run.failure.is_some());
    let (seed, first) = failed.expect("the simulation never found that the disk forgets");
    assert!(
        first
            .failure
            .as_ref()
            .unwrap()
            .contains("nobody will be told of key-"),
        "{first:?}"
    );
    for _ in 0..2 {
        assert_eq!(run(seed), first, "EFFACE_SEED={seed} takes another way");
    }
    assert_ne!(
        run(seed + 1).steps,
        first.steps,
        "another seed takes the same way"
    );
}
