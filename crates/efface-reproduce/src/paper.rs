//! The numbers of the paper, as printed, for the places beside ours. Cao, Wang, Si, Huang and Xiao
//! 2022, tables 1 to 5; Izzo, Smart, Chaudhuri and Zou 2021, table 4.

/// Deletion time by the time of a Newton step from a kept inverse, which the paper calls
/// retraining, ×1e-4: (k, [(d, INF, PRU)]).
pub(crate) const TABLE1_WIDTHS: [usize; 4] = [1000, 1500, 2000, 3000];
pub(crate) const TABLE1_DELETIONS: [usize; 7] = [1, 5, 10, 30, 50, 100, 200];
const TABLE1: [([f64; 4], [f64; 4]); 7] = [
    ([79.0, 50.0, 42.0, 29.0], [60.0, 15.0, 9.0, 4.0]),
    ([99.0, 60.0, 47.0, 30.0], [125.0, 43.0, 25.0, 12.0]),
    ([103.0, 64.0, 51.0, 31.0], [155.0, 43.0, 27.0, 12.0]),
    ([115.0, 70.0, 58.0, 35.0], [405.0, 141.0, 79.0, 32.0]),
    ([132.0, 75.0, 63.0, 40.0], [805.0, 294.0, 179.0, 38.0]),
    ([152.0, 89.0, 77.0, 47.0], [1511.0, 593.0, 296.0, 61.0]),
    ([316.0, 172.0, 149.0, 77.0], [3492.0, 1276.0, 606.0, 102.0]),
];

/// What the paper prints for INF and PRU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PrintedFigures {
    pub(crate) influence: f64,
    pub(crate) projection: f64,
}

fn place<T: PartialEq>(among: &[T], value: T) -> Option<usize> {
    among.iter().position(|known| *known == value)
}

/// Table 1, ×1e-4.
pub(crate) fn table1(k: usize, d: usize) -> Option<PrintedFigures> {
    let row = place(&TABLE1_DELETIONS, k)?;
    let column = place(&TABLE1_WIDTHS, d)?;
    Some(PrintedFigures {
        influence: TABLE1[row].0[column],
        projection: TABLE1[row].1[column],
    })
}

pub(crate) const TABLE3_WIDTHS: [usize; 4] = [1000, 1500, 2000, 2500];
pub(crate) const TABLE3_DELETIONS: [usize; 5] = [1, 5, 10, 20, 50];
const TABLE3: [([f64; 5], [f64; 5]); 4] = [
    (
        [85.0, 98.0, 187.0, 350.0, 921.0],
        [81.0, 90.0, 157.0, 325.0, 807.0],
    ),
    (
        [40.0, 45.0, 76.0, 174.0, 381.0],
        [34.0, 39.0, 46.0, 102.0, 301.0],
    ),
    (
        [17.0, 24.0, 43.0, 97.0, 281.0],
        [14.0, 21.0, 25.0, 59.0, 176.0],
    ),
    ([8.0, 18.0, 20.0, 44.0, 82.0], [5.0, 12.0, 14.0, 31.0, 68.0]),
];

/// Table 3, ×1e-4.
pub(crate) fn table3(k: usize, d: usize) -> Option<PrintedFigures> {
    let row = place(&TABLE3_WIDTHS, d)?;
    let column = place(&TABLE3_DELETIONS, k)?;
    Some(PrintedFigures {
        influence: TABLE3[row].0[column],
        projection: TABLE3[row].1[column],
    })
}

/// Table 2: the fastest and the slowest run and a total, in seconds. The number of runs in the
/// total is not stated.
pub(crate) fn table2(method: &str) -> Option<(f64, f64, f64)> {
    Some(match method {
        "retrain" => (160.0, 200.0, 1720.0),
        "retrain, augmented" => (160.0, 200.0, 1780.0),
        "sisa" => (145.0, 180.0, 1680.0),
        "influence" => (130.0, 170.0, 1550.0),
        "projection_residual" => (110.0, 150.0, 1350.0),
        _ => return None,
    })
}

/// Accuracy before and after the projection residual update.
pub(crate) const TABLE2_ACCURACY: (f64, f64) = (0.9348, 0.93);

pub(crate) const TABLE4_DELETIONS: [usize; 3] = [10, 50, 100];
pub(crate) const TABLE4_KEEPS: [f64; 3] = [0.5, 0.25, 0.1];
const TABLE4: [[(f64, f64); 3]; 3] = [
    [(1.19, 1.12), (1.09, 0.98), (1.10, 1.07)],
    [(0.96, 0.96), (1.05, 0.98), (3.11, 0.65)],
    [(0.88, 0.79), (1.02, 0.62), (1.22, 0.33)],
];
const TABLE5: [[f64; 3]; 3] = [
    [8.81, 9.17, 10.84],
    [11.56, 10.33, 9.62],
    [9.39, 9.52, 10.03],
];

/// Table 4: what is left of the injected weight.
pub(crate) fn table4(k: usize, keep: f64) -> Option<PrintedFigures> {
    let (influence, projection) = TABLE4[place(&TABLE4_DELETIONS, k)?][place(&TABLE4_KEEPS, keep)?];
    Some(PrintedFigures {
        influence,
        projection,
    })
}

/// Table 5: the median weight before.
pub(crate) fn table5(k: usize, keep: f64) -> Option<f64> {
    Some(TABLE5[place(&TABLE4_DELETIONS, k)?][place(&TABLE4_KEEPS, keep)?])
}

pub(crate) const L2_DELETIONS: [usize; 3] = [1, 10, 100];
pub(crate) const L2_SCALES: [f64; 3] = [1.0, 10.0, 100.0];
const L2: [[(f64, f64); 3]; 3] = [
    [(0.73, 0.97), (0.96, 0.97), (0.99, 0.97)],
    [(0.27, 0.89), (0.92, 0.90), (0.99, 0.90)],
    [(0.14, 0.88), (0.90, 0.88), (0.99, 0.88)],
];

/// Izzo et al., table 4: distance to retraining as a share of how far it moved.
pub(crate) fn l2(k: usize, scale: f64) -> Option<PrintedFigures> {
    let (influence, projection) = L2[place(&L2_DELETIONS, k)?][place(&L2_SCALES, scale)?];
    Some(PrintedFigures {
        influence,
        projection,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_where_the_paper_has_them() {
        assert_eq!(
            table1(30, 2000),
            Some(PrintedFigures {
                influence: 58.0,
                projection: 79.0
            })
        );
        assert_eq!(
            table1(200, 1000),
            Some(PrintedFigures {
                influence: 316.0,
                projection: 3492.0
            })
        );
        assert_eq!(
            table3(20, 1500),
            Some(PrintedFigures {
                influence: 174.0,
                projection: 102.0
            })
        );
        assert_eq!(
            table4(100, 0.1),
            Some(PrintedFigures {
                influence: 1.22,
                projection: 0.33
            })
        );
        assert_eq!(table5(50, 0.5), Some(11.56));
        assert_eq!(
            l2(10, 1.0),
            Some(PrintedFigures {
                influence: 0.27,
                projection: 0.89
            })
        );
        assert_eq!(
            (table1(2, 1000), table3(1, 3000), table4(10, 0.3)),
            (None, None, None)
        );
    }
}
