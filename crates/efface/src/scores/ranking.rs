//! The area under the ROC curve, by ranks.

/// The chance that a row of the class is ranked above a row that is not, ties counting half (the
/// Mann–Whitney statistic). None where there are no rows of one of the two. `ranked` holds a score
/// and whether the row is of the class; it is sorted.
pub fn area_under_curve(ranked: &mut [(f64, bool)]) -> Option<f64> {
    let inside = ranked
        .iter()
        .filter(|(_, is_of_class)| *is_of_class)
        .count() as f64;
    let outside = ranked.len() as f64 - inside;
    if inside == 0.0 || outside == 0.0 {
        return None;
    }
    ranked.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let mut wins = 0.0;
    let mut below = 0.0;
    for tied in ranked.chunk_by(|a, b| a.0 == b.0) {
        let members = tied.iter().filter(|(_, is_of_class)| *is_of_class).count() as f64;
        let others = tied.len() as f64 - members;
        wins += members * (below + 0.5 * others);
        below += others;
    }
    Some(wins / (inside * outside))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_without_ties_with_ties_and_of_one_class() {
        let mut perfect = [(0.1, false), (0.9, true), (0.4, false)];
        assert_eq!(area_under_curve(&mut perfect), Some(1.0));
        // scikit-learn 1.9.1: roc_auc_score([0, 0, 1, 1, 1, 0], [0.1, 0.4, 0.35, 0.8, 0.4, 0.4]) =
        // 0.6666666666666667
        let mut tied = [
            (0.1, false),
            (0.4, false),
            (0.35, true),
            (0.8, true),
            (0.4, true),
            (0.4, false),
        ];
        assert!((area_under_curve(&mut tied).unwrap() - 6.0 / 9.0).abs() < 1e-15);
        assert_eq!(area_under_curve(&mut [(0.1, true), (0.2, true)]), None);
    }
}
