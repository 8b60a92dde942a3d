//! Nightly refits: a new fit takes the place of a model, and its log, its keys and what it has
//! forgotten go on.

mod common;

use common::{Folder, HOUSES};

#[test]
fn a_refit_goes_on_with_the_log_and_refuses_what_was_forgotten() {
    let folder = Folder::with_houses();
    let key = folder.done("keys houses.efface");
    folder.write("houses.pub", &key);
    folder.done("forget houses.efface --subject owner=ann --request T-1 --receipt receipt.cose");
    let fit = "fit new.csv --target price --id house --subject owner";
    folder.write("new.csv", HOUSES);
    folder.fails(
        &format!("{fit} --replace houses.efface"),
        5,
        &["must not come back"],
    );
    // Rows that only judge the new model are rows of hers all the same.
    folder.write("judges.csv", HOUSES);
    folder.write(
        "others.csv",
        "house,owner,rooms,price\nn1,eve,2,150\nn2,eve,4,300\nn3,eve,3,250\n",
    );
    let others = "fit others.csv --target price --id house --subject owner --replace houses.efface";
    folder.fails(
        &format!("{others} --test judges.csv"),
        5,
        &["must not come back"],
    );
    assert_eq!(
        folder.json("inspect houses.efface --json")["rows"],
        5,
        "nothing changed"
    );
    // Other rows, other columns, another model.
    folder.write(
        "new.csv",
        "house,owner,rooms,garden,price\nh2,bob,5,yes,340\nn1,eve,2,no,150\nn2,eve,4,yes,300\n",
    );
    let told = folder.run(&format!("{fit} --replace houses.efface --lambda 2"));
    assert_eq!(told.code, 0, "{told:?}");
    assert!(
        told.err
            .contains("note: its log goes on, with 3 receipts, under the key that it had"),
        "{}",
        told.err
    );
    assert!(
        told.err
            .contains("note: 2 rows that the replaced model had forgotten must not come back"),
        "{}",
        told.err
    );
    let summary = folder.json("inspect houses.efface --json");
    assert_eq!(
        (summary["rows"].as_u64(), summary["lambda"].as_f64()),
        (Some(3), Some(2.0))
    );
    assert_eq!(
        (summary["forgotten"].as_u64(), summary["receipts"].as_u64()),
        (Some(2), Some(3))
    );
    assert_eq!(folder.done("keys houses.efface"), key);
    assert!(folder.done("log houses.efface").contains("refit"));
    let verdict = folder.done("verify houses.efface --key houses.pub --rows");
    assert!(!verdict.contains("fails"), "{verdict}");
    folder.done("verify receipt.cose --key houses.pub");
    // It equals a fit into a new file, and goes on as any model does.
    folder.done(&format!("{fit} --lambda 2 -o fresh.efface"));
    let predicted = |model: &str| folder.done(&format!("predict {model} new.csv"));
    assert_eq!(predicted("houses.efface"), predicted("fresh.efface"));
    let again = folder.run("forget houses.efface --subject owner=ann --request T-1");
    assert!(again.err.contains("answered before"), "{again:?}");
    folder.done("forget houses.efface --ids n1");
    folder.fails("forget houses.efface --ids h1", 4, &["it was forgotten on"]);
    // The bytes of the rows of before are gone.
    let bytes = std::fs::read(folder.path("houses.efface")).unwrap_or_default();
    assert!(!bytes.windows(4).any(|window| window == b"Graz"));
}

#[test]
fn a_log_is_not_given_up_by_the_way() {
    let folder = Folder::with_houses();
    folder.done("forget houses.efface --ids h1");
    let fit = "fit houses.csv --target price --id house --subject owner";
    let says = [
        "a log of 2 receipts and 1 forgotten row",
        "--replace houses.efface",
        "--discard-log",
    ];
    folder.fails(&format!("{fit} --force"), 5, &says);
    folder.fails(&format!("{fit} --discard-log"), 2, &["--force"]);
    folder.fails(
        &format!("{fit} --force --discard-log"),
        5,
        &["row h1", "must not come back"],
    );
    folder.done(&format!("{fit} --force --discard-log --drop-suppressed"));
    assert_eq!(folder.json("inspect houses.efface --json")["receipts"], 1);
    // What is no model may be overwritten as before.
    folder.write("plain.efface", "not a model");
    folder.done(&format!("{fit} -o plain.efface --force"));
}

#[test]
fn a_refit_that_cannot_keep_its_promise_is_refused() {
    let folder = Folder::with_houses();
    let fit = "fit houses.csv --target price";
    folder.fails(
        &format!("{fit} --replace missing.efface"),
        7,
        &["missing.efface"],
    );
    folder.fails(
        &format!("{fit} --replace houses.efface -o other.efface"),
        2,
        &["cannot be used with"],
    );
    folder.done(&format!(
        "{fit} --ignore house,owner --replace houses.efface"
    ));
    folder.done("forget houses.efface --ids 2");
    folder.fails(
        &format!("{fit} --ignore house,owner --replace houses.efface"),
        2,
        &["numbered anew"],
    );
    std::fs::remove_file(folder.path("houses.efface.key")).unwrap_or_default();
    folder.fails(
        &format!("{fit} --id house --replace houses.efface"),
        5,
        &["houses.efface.key"],
    );
}
