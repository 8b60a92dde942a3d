//! Izzo's L2 table: their construction of the rows and ours, each with both comparisons.

use efface_report::{Number, ReportTable, RichText, Section, Style, TableCell, TableColumn};

use super::{TrialResults, kept, mean, printed, trials_text};
use crate::paper;
use crate::part::PaperStudy;
use crate::studies::distance::{CONSTRUCTIONS, RowConstruction, at_scale, cell};
use crate::studies::{METHODS, StudyContext};

/// What is added to a value's name for the comparison with a model that misses one row more.
const ONE_MORE: &str = ", one row more";

pub(super) fn section(context: &StudyContext, results: &TrialResults<'_>) -> Section {
    Section::new("L2: the distance to retraining, on outliers")
        .add(
            "The table of Izzo et al. on which the paper builds. The first rows and their targets are scaled by 1, 10 or 100, and k of \
             them forgotten. 0 is retraining; 1 is not having moved. Their script draws the covariance of the rows by \
             scikit-learn's make_spd_matrix, scales k + 1 rows, and compares with a model that misses those k + 1 rows; so even true \
             retraining would not come out at 0 there. The last rows of each k repeat that, in the columns “one row more”; those \
             above draw the covariance as the other tables here do, or scale k rows.",
        )
        .add(table(context, results))
        .note(note(context, results))
}

fn table(context: &StudyContext, results: &TrialResults<'_>) -> ReportTable {
    let plan = &context.plan.distance;
    let all = || {
        CONSTRUCTIONS
            .into_iter()
            .flat_map(|made| plan.deletions.iter().map(move |&k| cell(made, k)))
    };
    let trials = trials_text(results.trials(PaperStudy::Distance, all()));
    let caption = RichText::new(format!(
        "Distance to the retrained parameters as a share of the distance before; d = {}; mean of ",
        plan.width
    ));
    let mut table = ReportTable::new("l2", caption.text(trials));
    table.columns(["k", "covariance", "rows scaled", "method"].map(TableColumn::label));
    for scale in &plan.scales {
        let titles = ["Izzo", "here", "one row more"];
        table.columns(
            titles.map(|title| TableColumn::number(title).group(format!("outliers ×{scale}"))),
        );
    }
    for (at, &k) in plan.deletions.iter().enumerate() {
        for (nth, made) in CONSTRUCTIONS.into_iter().enumerate() {
            if at + nth > 0 {
                table.rule();
            }
            for name in METHODS.iter().map(|(_, name)| *name).chain(["retrain"]) {
                table.row(row(context, results, made, k, name));
            }
        }
    }
    if let Some(kept) = kept(results, PaperStudy::Distance, all()) {
        table.note(kept);
    }
    table
}

fn row(
    context: &StudyContext,
    results: &TrialResults<'_>,
    made: RowConstruction,
    k: usize,
    name: &str,
) -> Vec<TableCell> {
    let style = if matches!(name, "INF" | "PRU") {
        Style::Fixed(2)
    } else {
        Style::Digits(1)
    };
    let mut cells: Vec<TableCell> = vec![
        k.to_string().into(),
        made.covariance.name().into(),
        (k + made.beyond).to_string().into(),
        name.into(),
    ];
    for &scale in &context.plan.distance.scales {
        let print = paper::l2(k, scale).and_then(|p| match name {
            "INF" => Some(p.influence),
            "PRU" => Some(p.projection),
            _ => None,
        });
        let get =
            |name: &str| results.get(PaperStudy::Distance, &cell(made, k), &at_scale(scale, name));
        cells.extend([
            printed(print, style),
            mean(get(name), 1.0, style),
            mean(get(&format!("{name}{ONE_MORE}")), 1.0, Style::Fixed(2)),
        ]);
    }
    cells
}

/// The means of a value over all k and scales, in one order.
fn means(
    context: &StudyContext,
    results: &TrialResults<'_>,
    made: RowConstruction,
    name: &str,
) -> Option<Vec<f64>> {
    let plan = &context.plan.distance;
    let places = plan
        .deletions
        .iter()
        .flat_map(|&k| plan.scales.iter().map(move |&scale| (k, scale)));
    let found = places.map(|(k, scale)| {
        Some(
            results
                .get(PaperStudy::Distance, &cell(made, k), &at_scale(scale, name))?
                .mean,
        )
    });
    found.collect()
}

/// The largest difference between two lists.
fn largest_shift(a: &[f64], b: &[f64]) -> f64 {
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f64::max)
}

fn range(text: RichText, name: &str, values: &[f64]) -> RichText {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    text.number(format!("least {name}"), Number::new(least, Style::Fixed(2)))
        .and(" to ")
        .number(format!("most {name}"), Number::new(most, Style::Fixed(2)))
}

/// What PRU leaves over all cells, by construction and comparison.
struct ProjectionShares {
    ours: Vec<f64>,
    spd: Vec<f64>,
    /// Against a model that misses one row more.
    spd_missing: Vec<f64>,
    theirs: Vec<f64>,
    theirs_missing: Vec<f64>,
}

impl ProjectionShares {
    fn of(context: &StudyContext, results: &TrialResults<'_>) -> Option<Self> {
        let [ours, spd, theirs] = CONSTRUCTIONS;
        let right = |made: RowConstruction| means(context, results, made, "PRU");
        let missing =
            |made: RowConstruction| means(context, results, made, &format!("PRU{ONE_MORE}"));
        Some(Self {
            ours: right(ours)?,
            spd: right(spd)?,
            spd_missing: missing(spd)?,
            theirs: right(theirs)?,
            theirs_missing: missing(theirs)?,
        })
    }
}

/// Which of the three differences moves what, from the numbers.
fn note(context: &StudyContext, results: &TrialResults<'_>) -> RichText {
    let start = RichText::new("Where the numbers differ. ");
    let Some(found) = ProjectionShares::of(context, results) else {
        return start.and("Not all cells have been measured yet.");
    };
    let ProjectionShares {
        ours,
        spd,
        spd_missing,
        theirs,
        theirs_missing,
    } = found;
    let plan = &context.plan.distance;
    let places = plan
        .deletions
        .iter()
        .flat_map(|&k| plan.scales.iter().map(move |&scale| (k, scale)));
    let printed: Vec<f64> = places
        .filter_map(|(k, scale)| Some(paper::l2(k, scale)?.projection))
        .collect();
    let number = |value: f64| Number::new(value, Style::Fixed(2));
    let mut text = range(start.and("PRU leaves "), "PRU, our covariance", &ours)
        .and(" with our covariance and ");
    text = range(text, "PRU, make_spd_matrix", &spd)
        .and(" with that of make_spd_matrix; as their script compares, ");
    text = range(text, "PRU, their script", &theirs_missing);
    if !printed.is_empty() {
        text = range(text.and(" (printed: "), "PRU, printed", &printed).and(")");
    }
    text.and(". The covariance moves PRU by up to ")
        .number("shift by the covariance", number(largest_shift(&ours, &spd)))
        .and(", one row more that is scaled by up to ")
        .number("shift by a scaled row", number(largest_shift(&spd_missing, &theirs_missing)))
        .and(" as they compare, and one row more that is missing by up to ")
        .number("shift by a missing row", number(largest_shift(&theirs, &theirs_missing)))
        .and(". PRU can move inside the span of the k rows alone, and the way to retraining is the inverse Hessian times those rows: \
              the more the eigenvalues of the covariance differ, the less of that way lies in the span. Ours has many near its \
              floor of 0.01; make_spd_matrix has one near d and the others spread evenly between 0 and 1, the \
              least of which decides much and differs from draw to draw, so that PRU's standard errors are larger there.")
}
