//! When new parameters may leave.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use efface::Method;
use efface_engine::ErrorKind::{Refused, Usage};
use efface_engine::{
    Engine, Error, ExportNoise, ForgetOptions, Parameters, PolicyChange, Silent, WitnessTerms,
    draw_key,
};
use efface_receipt::{
    LogCheckpoint, PrivacySpent, ReleaseTerms, WitnessKey, WitnessQuorum, cosign,
};

#[test]
fn an_amended_row_makes_an_export_wait_too() {
    let bench = Bench::new();
    let mut engine = bench.fit("model", &sparse(&table(&lines(40))));
    let all = lines(40);
    let pairs = PolicyChange {
        minimum_batch: Some(2),
        expose_forgotten: true,
        ..PolicyChange::default()
    };
    engine.set_policy(&pairs).unwrap();
    engine.export("json", None).unwrap();
    let fixed = format!("id,who,size,words,price\n{},someone,3,tall,4\n", all[3].id);
    engine.amend(csv(&fixed), &Silent).unwrap();
    assert_eq!(engine.export("json", None).unwrap_err().kind(), Refused);
    let release = receipts(&engine).pop().unwrap().release.unwrap();
    assert_eq!((release.batch, release.warnings.len()), (1, 0));
    engine
        .forget(
            &by_method(&ids(&[&all[1].id]), &Method::default()),
            &ForgetOptions::default(),
        )
        .unwrap();
    engine.export("json", None).unwrap();
}

fn with_noise(noise: ExportNoise) -> PolicyChange {
    PolicyChange {
        noise: Some(noise),
        ..PolicyChange::default()
    }
}

fn outright(deviation: f64) -> PolicyChange {
    // Such noise promises nothing, so that an export would wait for company.
    let alone = PolicyChange {
        minimum_batch: Some(1),
        expose_forgotten: true,
        ..PolicyChange::default()
    };
    PolicyChange {
        noise: Some(ExportNoise::Deviation { deviation }),
        ..alone
    }
}

fn promise(epsilon: f64, sensitivity: Option<f64>) -> PolicyChange {
    with_noise(ExportNoise::Calibrated {
        epsilon,
        delta: 1e-5,
        sensitivity,
    })
}

/// Every number of some parameters.
fn numbers(parameters: &Parameters) -> Vec<f64> {
    let tables = parameters
        .tables
        .iter()
        .flat_map(|(_, lines)| lines.concat());
    tables
        .chain(
            parameters
                .vectors
                .iter()
                .flat_map(|(_, values)| values.clone()),
        )
        .collect()
}

fn export(engine: &mut Engine) -> Vec<f64> {
    numbers(&engine.export("json", None).unwrap().parameters)
}

/// What an export adds to the parameters.
fn noise(engine: &mut Engine) -> Vec<f64> {
    let exported = export(engine);
    let parameters = numbers(&engine.parameters().unwrap());
    exported
        .iter()
        .zip(&parameters)
        .map(|(noisy, plain)| noisy - plain)
        .collect()
}

fn norm(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum::<f64>().sqrt()
}

fn last_release(engine: &Engine) -> ReleaseTerms {
    receipts(engine).pop().unwrap().release.unwrap()
}

fn spent(engine: &Engine) -> PrivacySpent {
    last_release(engine).privacy.unwrap()
}

/// Enough words for the noise of two versions to be compared.
fn wide_model(bench: &Bench) -> Engine {
    let mut text = String::from("id,words,price\n");
    for at in 0..60 {
        let words: Vec<String> = (0..20)
            .map(|word| format!("w{}", (at * 7 + word * 13) % 400))
            .collect();
        text.push_str(&format!("r{at},{},{}\n", words.join(" "), at % 11));
    }
    let mut request = request(&text, "price");
    request.id = Some("id".into());
    request.text = vec!["words".into()];
    bench.fit("model", &request)
}

#[test]
fn a_version_has_one_noise_however_often_it_is_exported() {
    let bench = Bench::new();
    let mut engine = wide_model(&bench);
    engine.set_policy(&outright(0.5)).unwrap();
    let first = noise(&mut engine);
    assert!(norm(&first) > 0.0);
    let exported = export(&mut engine);
    // Another process, and another format.
    let mut other = Engine::open(&bench.path("model")).unwrap();
    let exports: Vec<Vec<f64>> = ["json", "npz", "safetensors"]
        .map(|format| numbers(&other.export(format, None).unwrap().parameters))
        .into();
    assert!(exports.iter().all(|numbers| *numbers == exported));
    // So that the mean of many is as far from the parameters as each of them.
    let many = exports.len() as f64;
    let mean: Vec<f64> = (0..exported.len())
        .map(|at| exports.iter().map(|numbers| numbers[at]).sum::<f64>() / many)
        .collect();
    let plain = numbers(&other.parameters().unwrap());
    let off: Vec<f64> = mean
        .iter()
        .zip(&plain)
        .map(|(mean, plain)| mean - plain)
        .collect();
    assert!((norm(&off) / norm(&first) - 1.0).abs() < 1e-12);
    // A new signing key is no new noise.
    other
        .rotate_key(&efface_engine::KeyRotation::default())
        .unwrap();
    assert_eq!(export(&mut other), exported);
    sound(&other);
}

#[test]
fn another_version_has_independent_noise() {
    let bench = Bench::new();
    let mut engine = wide_model(&bench);
    engine.set_policy(&outright(0.5)).unwrap();
    let first = noise(&mut engine);
    engine
        .forget(
            &by_method(&ids(&["r3"]), &Method::default()),
            &ForgetOptions::default(),
        )
        .unwrap();
    let second = noise(&mut engine);
    // A fit of the same table is another log with another seed.
    let elsewhere = Bench::new();
    let mut again = wide_model(&elsewhere);
    again.set_policy(&outright(0.5)).unwrap();
    let third = noise(&mut again);
    for other in [&second, &third] {
        let product: f64 = first.iter().zip(other).map(|(a, b)| a * b).sum();
        let cosine = product / (norm(&first) * norm(other));
        // Of a few hundred numbers: the standard deviation of the cosine is 1/√n.
        assert!(
            cosine.abs() < 5.0 / (first.len() as f64).sqrt(),
            "{cosine} of {}",
            first.len()
        );
    }
    assert!((norm(&second) / norm(&first) - 1.0).abs() < 0.3);
}

#[test]
fn what_exports_spend_adds_up() {
    let bench = Bench::new();
    let mut engine = wide_model(&bench);
    engine.set_policy(&promise(1.0, Some(10.0))).unwrap();
    assert_eq!(engine.policy().unwrap().spent.unwrap().releases, 0);
    engine.export("json", None).unwrap();
    let first = spent(&engine);
    assert!((first.epsilon - 1.0).abs() < 1e-8 && first.delta == 1e-5 && first.since.is_none());
    assert_eq!(first.total.as_ref().unwrap().epsilon, first.epsilon);
    // Exporting an equal copy again reveals nothing new.
    engine.export("npz", None).unwrap();
    let again = spent(&engine);
    assert_eq!(
        (again.mu, again.epsilon, again.total),
        (0.0, 0.0, first.total)
    );
    for (at, id) in ["r1", "r2", "r3"].iter().enumerate() {
        engine
            .forget(
                &by_method(&ids(&[id]), &Method::default()),
                &ForgetOptions::default(),
            )
            .unwrap();
        engine.export("json", None).unwrap();
        let total = spent(&engine).total.unwrap();
        assert_eq!(total.releases, at as u64 + 2);
        assert!((total.mu / (first.mu * (at as f64 + 2.0).sqrt()) - 1.0).abs() < 1e-12);
    }
    // mpmath 1.3.0: theorem 8 of Balle and Wang at δ = 1e-5 and twice the μ of ε = 1.
    let total = engine.policy().unwrap().spent.unwrap();
    assert!(
        (total.epsilon - 2.154_676_657_667_7).abs() < 1e-7,
        "{total:?}"
    );
    // Without noise the account starts anew, from that export on.
    engine.set_policy(&with_noise(ExportNoise::None)).unwrap();
    let plain = engine.export("json", None).unwrap();
    assert!(
        plain
            .warning
            .unwrap()
            .contains("what noise on earlier exports hid")
    );
    assert!(last_release(&engine).privacy.is_none());
    engine.set_policy(&promise(1.0, Some(10.0))).unwrap();
    engine
        .forget(
            &by_method(&ids(&["r4"]), &Method::default()),
            &ForgetOptions::default(),
        )
        .unwrap();
    engine.export("json", None).unwrap();
    let spent = spent(&engine);
    assert_eq!(
        (spent.since, spent.total.unwrap().releases),
        (Some(plain.receipt.sequence), 1)
    );
    sound(&engine);
}

#[test]
fn noise_that_was_chosen_outright_promises_nothing() {
    let bench = Bench::new();
    let mut engine = wide_model(&bench);
    engine.set_policy(&outright(0.5)).unwrap();
    let exported = engine.export("json", None).unwrap();
    // mpmath 1.3.0: σ = 4.2246… hides a distance of 1 at ε = 1 and δ = 1e-6.
    assert!(
        exported
            .warning
            .unwrap()
            .contains("it hides a distance of 1.184e-1 at ε = 1 and δ = 1e-6")
    );
    assert!(last_release(&engine).privacy.is_none());
    engine.set_policy(&promise(1.0, None)).unwrap();
    assert!(engine.policy().unwrap().spent.is_none());
    engine
        .forget(
            &by_method(&ids(&["r1"]), &Method::default()),
            &ForgetOptions::default(),
        )
        .unwrap();
    engine.export("json", None).unwrap();
    assert!(spent(&engine).total.is_none() && spent(&engine).epsilon > 0.99);
}

#[test]
fn one_version_leaves_with_one_deviation() {
    let bench = Bench::new();
    let mut engine = wide_model(&bench);
    engine.set_policy(&outright(0.5)).unwrap();
    let first = export(&mut engine);
    for policy in [outright(0.25), promise(1.0, Some(0.01)), promise(1.0, None)] {
        engine.set_policy(&policy).unwrap();
        let error = engine.export("json", None).unwrap_err();
        assert!(
            error.kind() == Refused && error.to_string().contains("deviation 0.5 before"),
            "{error}"
        );
        assert!(error.hint().unwrap().to_string().contains("`noise = 0.5`"));
    }
    engine.set_policy(&outright(0.5)).unwrap();
    assert_eq!(export(&mut engine), first);
    engine.set_policy(&outright(0.25)).unwrap();
    engine
        .forget(
            &by_method(&ids(&["r1"]), &Method::default()),
            &ForgetOptions::default(),
        )
        .unwrap();
    engine.export("json", None).unwrap();
}

#[test]
fn a_seed_that_is_lost_or_exchanged_is_noticed() {
    let bench = Bench::new();
    let mut engine = wide_model(&bench);
    let file = bench.path("model.key");
    let whole = std::fs::read_to_string(&file).unwrap();
    let seed = whole
        .lines()
        .find(|line| line.starts_with("NOISE+SEED+"))
        .unwrap();
    let digits = seed.rsplit_once('+').unwrap().1;
    let model = std::fs::read(bench.path("model")).unwrap();
    let holds = |needle: &[u8]| model.windows(needle.len()).any(|window| window == needle);
    let raw: Vec<u8> = (0..32)
        .map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap())
        .collect();
    assert!(
        !holds(digits.as_bytes()) && !holds(&raw),
        "the seed is in the model file"
    );

    engine.set_policy(&outright(0.5)).unwrap();
    engine.export("json", None).unwrap();
    let flipped = if digits.starts_with('0') { "1" } else { "0" };
    let exchanged = whole.replace(digits, &format!("{flipped}{}", &digits[1..]));
    for (text, says) in [
        (exchanged, "is not the one that the model was fitted with"),
        (whole.replace(seed, ""), "is not there"),
        (whole.replace(digits, &digits[1..]), "is not the one"),
    ] {
        std::fs::write(&file, text).unwrap();
        let receipts_before = receipts(&engine).len();
        let error = engine.export("json", None).unwrap_err();
        assert!(
            error.kind() == Refused && error.to_string().contains(says),
            "{error}"
        );
        assert!(
            !error.to_string().contains(&digits[8..])
                && error
                    .hint()
                    .unwrap()
                    .to_string()
                    .contains("put back the key file")
        );
        assert!(engine.set_policy(&outright(0.7)).is_err());
        // Whom it forgets it could not know again.
        let gone = by_method(&ids(&["r1"]), &Method::default());
        let error = engine.forget(&gone, &ForgetOptions::default()).unwrap_err();
        assert!(
            error.kind() == Refused && error.to_string().contains(says),
            "{error}"
        );
        assert_eq!(receipts(&engine).len(), receipts_before);
    }
    std::fs::write(&file, whole).unwrap();
    engine
        .forget(
            &by_method(&ids(&["r1"]), &Method::default()),
            &ForgetOptions::default(),
        )
        .unwrap();
    engine.set_policy(&with_noise(ExportNoise::None)).unwrap();
    engine.export("json", None).unwrap();
    engine.set_policy(&outright(0.7)).unwrap();
    engine.export("json", None).unwrap();
    sound(&engine);
}

#[test]
fn nothing_is_published_that_the_witnesses_of_the_policy_have_not_seen() {
    let bench = Bench::new();
    let mut engine = bench.fit("model", &sparse(&table(&lines(40))));
    let witnesses: Vec<_> = ["a", "b", "c"]
        .map(|name| draw_key(&format!("witness.example/{name}")).unwrap())
        .into();
    let keys: Vec<String> = witnesses
        .iter()
        .map(|key| WitnessKey::new(key.public()).to_string())
        .collect();
    let terms = |keys: &[String], needed| PolicyChange {
        witnesses: Some(WitnessTerms {
            keys: keys.to_vec(),
            needed,
        }),
        ..PolicyChange::default()
    };
    for wrong in [
        terms(&keys, 4),
        terms(&keys, 0),
        terms(&["no key".into()], 1),
    ] {
        let error = engine.set_policy(&wrong).unwrap_err();
        assert!(
            error.kind() == Usage && error.to_string().contains("no witnesses"),
            "{error}"
        );
    }
    let policy = engine.set_policy(&terms(&keys, 2)).unwrap();
    assert_eq!(
        policy.witnesses.as_ref().map(|witnesses| witnesses.needed),
        Some(2)
    );
    let settings = receipts(&engine).pop().unwrap().settings;
    assert_eq!(settings["witnesses_needed"].as_f64(), Some(2.0));
    assert!(settings["witnesses"].as_str().unwrap().contains(&keys[2]));

    let told = |engine: &Engine| {
        let checks = engine.verify(None).unwrap();
        checks
            .into_iter()
            .find(|check| check.check == "witnesses")
            .unwrap()
    };
    let quorum = WitnessQuorum::parse(&keys.join("\n"), Some(1)).unwrap();
    let sign = |engine: &mut Engine, at: usize| {
        let head = LogCheckpoint::parse_unverified(&engine.checkpoint().unwrap()).unwrap();
        let line = cosign(&head, 1_800_000_000, &witnesses[at]).unwrap();
        engine.add_cosignatures(&quorum, &line).unwrap();
    };
    assert!(matches!(
        engine.export("json", None),
        Err(Error::Unwitnessed { .. })
    ));
    sign(&mut engine, 0);
    assert!(told(&engine).passed && !told(&engine).known);
    assert!(matches!(
        engine.export("json", None),
        Err(Error::Unwitnessed { .. })
    ));
    sign(&mut engine, 2);
    assert!(told(&engine).passed && told(&engine).known);
    engine.export("json", None).unwrap();
    // The receipt of the export is a new head, which nobody has seen.
    assert!(!told(&engine).known);
    engine.set_policy(&terms(&[], 0)).unwrap();
    assert!(engine.policy().unwrap().witnesses.is_none());
    engine.export("npz", None).unwrap();
}
