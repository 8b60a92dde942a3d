//! The way of a request, simulated by seeds: servers that die between any two steps, clients that hang up, disks that are full,
//! clocks that jump forward and back, receivers that fail or never answer. Whatever happened, what was acknowledged is there
//! once, is told, and nothing is left over; tokens end by the clock.
//!
//! A seed that fails is named; `EFFACE_SEED=7 cargo test -p efface-server --test simulation` plays it again.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use axum::Router;
use common::receiver::CallbackReceiver;
use common::wire::RunningServer;
use common::{Asked, fit_houses, get, post, settings, token};
use efface_server::{CallbackSettings, Scope, Server, ServerSettings, TokenGrant, TokenStore};
use serde_json::{Value, json};

const ROWS: usize = 80;

/// Draws that follow from a seed.
struct SeededDice(u64);

impl SeededDice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
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
}

impl SimulatedWorld {
    fn body(&self, key: &str) -> Value {
        json!({"rows": [key.trim_start_matches("key-")], "callback_url": self.url})
    }

    fn heard(&mut self, key: &str, answer: &Asked) {
        if answer.status.as_u16() == 200 {
            let receipt = answer.json()["models"][0]["receipt"]["id"].as_str().unwrap().to_owned();
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
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let router = Server::start(self.settings.clone()).await.unwrap().router();
            for _ in 0..=self.dice.below(5) {
                self.step(&router).await;
            }
        });
        runtime.shutdown_background();
    }

    /// Somebody sets the clock.
    fn jump(&mut self) {
        let hour = 3_600_000;
        let jumps = [10_000, hour, 72 * hour, 9000 * hour];
        let length = jumps[self.dice.below(4) as usize];
        self.settings.clock.jump(if self.dice.below(2) == 0 { length } else { -length });
    }

    async fn step(&mut self, router: &Router) {
        let path = "/v1/models/houses/erasures";
        let choice = self.dice.below(13);
        if choice >= 11 {
            self.jump();
            let asked = get(router, "/v1/models", Some(&self.passing)).await.status.as_u16();
            let is_over = self.settings.clock.seconds() >= self.passing_ends;
            assert_eq!(asked, if is_over { 401 } else { 200 }, "a token ends by the clock");
            return;
        }
        if choice >= 9 {
            // Somebody sends an old request again.
            let known: Vec<String> = self.acknowledged.keys().chain(&self.unsure).cloned().collect();
            if known.is_empty() {
                return;
            }
            let key = known[self.dice.below(known.len() as u64) as usize].clone();
            let answer = post(router, path, &self.body(&key), Some(&key), Some(&self.lasting)).await;
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
                if let Some(answer) = asked {
                    self.heard(&key, &answer);
                }
            }
            _ => {
                // The disk has no room for one of the folders, or for the journal of the model.
                let place = ["inbox", "outbox", "houses.efface-journal"][choice as usize - 6];
                let place = self.settings.folder.join(place);
                let broken = FullDisk::of(&place);
                let answer = post(router, path, &body, Some(&key), Some(&self.lasting)).await;
                // A model that cannot be written acknowledges nothing.
                assert!(choice != 8 || broken.had || answer.status.is_server_error(), "{}", answer.json());
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

/// A place where nothing can be written: a file lies in the place of a folder, or a folder in the place of a journal.
struct FullDisk<'a> {
    place: &'a Path,
    had: bool,
}

impl<'a> FullDisk<'a> {
    fn of(place: &'a Path) -> Self {
        if place.extension().is_some() {
            // A journal that an earlier life left behind is not in the way: the model is whole only with it.
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

fn simulate(seed: u64) {
    let folder = tempfile::tempdir().unwrap();
    fit_houses(folder.path(), "houses", ROWS);
    let outside = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let answers = ["", "HTTP/1.1 500 Oh", "", "HTTP/1.1 503 Oh", "HTTP/1.1 200 OK"];
    let mut receiver = outside.block_on(CallbackReceiver::start(&answers));
    let host = format!("http://127.0.0.1:{}", receiver.port);
    let mut settings = settings(folder.path());
    let mut callbacks = CallbackSettings::new(vec![host.parse().unwrap()]);
    callbacks.allow_private = true;
    callbacks.patience = Duration::from_millis(200);
    settings.callbacks = Some(callbacks);
    settings.tokens = Some(folder.path().join("tokens.json"));
    let passing_ends = settings.clock.seconds() + 86_400;
    let lasting = token(folder.path(), &[Scope::Admin], None);
    let passing = passing_token(folder.path(), passing_ends);
    let mut world = SimulatedWorld {
        dice: SeededDice(seed),
        settings: settings.clone(),
        url: format!("{host}/"),
        lasting: lasting.clone(),
        passing,
        passing_ends,
        next_row: 0,
        acknowledged: BTreeMap::new(),
        unsure: BTreeSet::new(),
    };
    for _ in 0..8 {
        world.live();
    }
    // Clients that heard nothing ask again, until they hear that it is done.
    outside.block_on(async {
        let router = Server::start(settings.clone()).await.unwrap().router();
        let asking = async {
            while let Some(key) = world.unsure.first().cloned() {
                let answer = post(
                    &router,
                    "/v1/models/houses/erasures",
                    &world.body(&key),
                    Some(&key),
                    Some(&lasting),
                )
                .await;
                world.heard(&key, &answer);
                tokio::task::yield_now().await;
            }
            while get(&router, "/v1/erasures", Some(&lasting)).await.json()["erasures"] != json!([]) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), asking).await.expect("a request is never done");
        let rows =
            get(&router, "/v1/models/houses", Some(&lasting)).await.json()["rows"].as_u64().unwrap() as usize;
        assert_eq!(rows, ROWS - world.acknowledged.len(), "rows and requests do not agree");
    });
    // A last server delivers. Receivers that failed are called again when their wait is over by the clock, which jumps; somebody
    // who asks for one of the callbacks makes the server look at the clock, as it does by itself every half minute.
    outside.block_on(async {
        let server = RunningServer::start(settings).await;
        let as_admin = format!("HTTP/1.1\r\nAuthorization: Bearer {lasting}");
        let mut told = BTreeSet::new();
        let telling = async {
            while told.len() < world.acknowledged.len() {
                world.jump();
                let list = server.ask(&format!("GET /v1/callbacks {as_admin}"), "").await;
                let list: Value = serde_json::from_str(list.split_once("\r\n\r\n").unwrap().1).unwrap();
                let tried = |callback: &&Value| callback["attempts"].as_u64() > Some(0);
                if let Some(callback) = list["callbacks"].as_array().unwrap().iter().find(tried) {
                    let id = callback["id"].as_str().unwrap();
                    server.ask(&format!("POST /v1/callbacks/{id}/retry {as_admin}"), "").await;
                }
                while let Some(came) = receiver.try_next() {
                    let event: Value = serde_json::from_str(&came.body).unwrap();
                    told.insert(event["data"]["id"].as_str().unwrap().to_owned());
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(60), telling).await.expect("a callback is lost");
        assert!(told.iter().eq(world.acknowledged.keys()), "callbacks and requests do not agree");
        server.stop().await;
    });
    let left: Vec<_> = std::fs::read_dir(folder.path().join("inbox")).unwrap().collect();
    assert!(left.is_empty(), "requests are left in the inbox");
    outside.shutdown_background();
}

#[test]
fn whatever_happens_on_the_way_what_was_acknowledged_is_done_once_and_told() {
    let one = std::env::var("EFFACE_SEED").ok().map(|seed| seed.parse::<u64>().unwrap());
    let seeds = one.map_or(1..=8, |seed| seed..=seed);
    for seed in seeds {
        println!("EFFACE_SEED={seed}");
        simulate(seed);
    }
}
