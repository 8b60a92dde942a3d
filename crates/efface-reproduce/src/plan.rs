//! What is measured, how large and how often: the paper's settings, the quick ones, and those of
//! the tests. Where the full settings repeat something less often than the paper, a reason is kept
//! and printed.

use crate::paper;

/// All sizes of a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StudyPlan {
    pub(crate) times: TimesPlan,
    pub(crate) review_injection: ReviewInjectionPlan,
    pub(crate) network: NetworkTimesPlan,
    pub(crate) head: HeadInjectionPlan,
    pub(crate) injection: InjectionPlan,
    pub(crate) distance: DistancePlan,
    pub(crate) adaptive: AdaptivePlan,
    pub(crate) membership: MembershipPlan,
}

/// Table 1.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TimesPlan {
    pub(crate) widths: Vec<usize>,
    pub(crate) deletions: Vec<usize>,
    /// Rows a feature for generated rows.
    pub(crate) rows_per_feature: usize,
    pub(crate) trials: usize,
    /// In how many of the trials, evenly spread, the times are measured that requests are divided
    /// by.
    pub(crate) denominators: usize,
}

/// Table 1, read as what its caption says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReviewInjectionPlan {
    pub(crate) widths: Vec<usize>,
    pub(crate) deletions: Vec<usize>,
    /// As many reviews as the paper has.
    pub(crate) reviews: usize,
    pub(crate) trials: usize,
}

/// How a network is made.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TrainingPlan {
    /// Articles to generate where there is no data.
    pub(crate) articles: usize,
    pub(crate) hidden: usize,
    pub(crate) max_tokens: usize,
    pub(crate) epochs: usize,
}

/// Table 2.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NetworkTimesPlan {
    pub(crate) training: TrainingPlan,
    pub(crate) width: usize,
    /// Rows forgotten in each run.
    pub(crate) deletions: usize,
    pub(crate) runs: usize,
    /// Runs of what trains a whole network.
    pub(crate) retrainings: usize,
    pub(crate) shards: usize,
    /// Articles made from others.
    pub(crate) augmented: usize,
}

/// Table 3, figures 1 and 2.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HeadInjectionPlan {
    pub(crate) training: TrainingPlan,
    pub(crate) widths: Vec<usize>,
    pub(crate) deletions: Vec<usize>,
    pub(crate) trials: usize,
    pub(crate) shards: usize,
}

/// Tables 4 and 5.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct InjectionPlan {
    pub(crate) width: usize,
    pub(crate) rows: usize,
    pub(crate) deletions: Vec<usize>,
    pub(crate) keeps: Vec<f64>,
    pub(crate) trials: usize,
}

/// Izzo's L2 table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DistancePlan {
    pub(crate) width: usize,
    pub(crate) rows: usize,
    pub(crate) deletions: Vec<usize>,
    pub(crate) scales: Vec<f64>,
    pub(crate) trials: usize,
}

/// Sums on an adaptive learner.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AdaptivePlan {
    pub(crate) rows: usize,
    pub(crate) width: usize,
    /// Rounds of gradient descent, ascending.
    pub(crate) rounds: Vec<usize>,
    pub(crate) deletions: Vec<usize>,
    pub(crate) trials: usize,
}

/// Membership inference.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MembershipPlan {
    pub(crate) rows: usize,
    pub(crate) width: usize,
    pub(crate) forgotten: usize,
    pub(crate) oracles: usize,
}

/// The penalty of the linear studies, as in the paper.
pub(crate) const LAMBDA: f64 = 1e-4;

impl StudyPlan {
    /// The paper's own settings.
    pub(crate) fn full() -> Self {
        let training = TrainingPlan {
            articles: 2225,
            hidden: 96,
            max_tokens: 250,
            epochs: 12,
        };
        Self {
            times: TimesPlan {
                widths: paper::TABLE1_WIDTHS.to_vec(),
                deletions: paper::TABLE1_DELETIONS.to_vec(),
                rows_per_feature: 10,
                trials: 100,
                denominators: 10,
            },
            review_injection: ReviewInjectionPlan {
                widths: paper::TABLE1_WIDTHS.to_vec(),
                deletions: paper::TABLE1_DELETIONS.to_vec(),
                reviews: 2100,
                trials: 5,
            },
            network: NetworkTimesPlan {
                training: training.clone(),
                width: 1000,
                deletions: 10,
                runs: 10,
                retrainings: 3,
                shards: 5,
                augmented: 100,
            },
            head: HeadInjectionPlan {
                training,
                widths: paper::TABLE3_WIDTHS.to_vec(),
                deletions: paper::TABLE3_DELETIONS.to_vec(),
                trials: 10,
                shards: 5,
            },
            injection: InjectionPlan {
                width: 1500,
                rows: 15_000,
                deletions: paper::TABLE4_DELETIONS.to_vec(),
                keeps: paper::TABLE4_KEEPS.to_vec(),
                trials: 50,
            },
            distance: DistancePlan {
                width: 1500,
                rows: 15_000,
                deletions: paper::L2_DELETIONS.to_vec(),
                scales: paper::L2_SCALES.to_vec(),
                trials: 10,
            },
            adaptive: AdaptivePlan {
                rows: 2000,
                width: 50,
                rounds: vec![1, 2, 5, 10, 20, 50, 100, 200, 500],
                deletions: vec![1, 10, 100],
                trials: 20,
            },
            membership: MembershipPlan {
                rows: 1000,
                width: 100,
                forgotten: 100,
                oracles: 256,
            },
        }
    }

    /// Everything once, small enough for two minutes on two cores.
    pub(crate) fn quick() -> Self {
        let training = TrainingPlan {
            articles: 600,
            hidden: 24,
            max_tokens: 60,
            epochs: 14,
        };
        let full = Self::full();
        Self {
            times: TimesPlan {
                widths: vec![1000, 1500],
                rows_per_feature: 10,
                trials: 5,
                denominators: 5,
                ..full.times
            },
            review_injection: ReviewInjectionPlan {
                widths: vec![1000],
                deletions: vec![1, 10, 50],
                trials: 2,
                ..full.review_injection
            },
            network: NetworkTimesPlan {
                training: training.clone(),
                runs: 3,
                retrainings: 1,
                augmented: 20,
                ..full.network
            },
            head: HeadInjectionPlan {
                training,
                widths: vec![1000, 1500],
                trials: 2,
                ..full.head
            },
            injection: InjectionPlan {
                width: 400,
                rows: 4000,
                trials: 3,
                ..full.injection
            },
            distance: DistancePlan {
                width: 400,
                rows: 4000,
                trials: 3,
                ..full.distance
            },
            adaptive: AdaptivePlan {
                rows: 500,
                width: 20,
                rounds: vec![1, 2, 5, 10, 20, 50, 100],
                trials: 5,
                ..full.adaptive
            },
            membership: MembershipPlan {
                rows: 300,
                width: 40,
                forgotten: 40,
                oracles: 64,
            },
        }
    }

    /// So small that a test can run it all.
    #[cfg(test)]
    pub(crate) fn tiny() -> Self {
        let training = TrainingPlan {
            articles: 60,
            hidden: 4,
            max_tokens: 20,
            epochs: 1,
        };
        let quick = Self::quick();
        Self {
            times: TimesPlan {
                widths: vec![40],
                deletions: vec![1, 5],
                trials: 2,
                denominators: 2,
                ..quick.times
            },
            review_injection: ReviewInjectionPlan {
                widths: vec![40],
                deletions: vec![1, 5],
                reviews: 80,
                trials: 2,
            },
            network: NetworkTimesPlan {
                training: training.clone(),
                width: 12,
                deletions: 2,
                runs: 2,
                retrainings: 1,
                shards: 2,
                augmented: 4,
            },
            head: HeadInjectionPlan {
                training,
                widths: vec![12, 16],
                deletions: vec![1, 5],
                trials: 2,
                shards: 2,
            },
            injection: InjectionPlan {
                width: 30,
                rows: 120,
                deletions: vec![5],
                keeps: vec![0.5, 0.25],
                trials: 2,
            },
            distance: DistancePlan {
                width: 20,
                rows: 100,
                deletions: vec![1, 5],
                scales: vec![1.0, 10.0],
                trials: 2,
            },
            adaptive: AdaptivePlan {
                rows: 60,
                width: 5,
                rounds: vec![1, 4],
                deletions: vec![1, 5],
                trials: 2,
            },
            membership: MembershipPlan {
                rows: 80,
                width: 6,
                forgotten: 16,
                oracles: 16,
            },
        }
    }

    /// This plan with so many trials everywhere. Studies that time a training keep their own,
    /// smaller number.
    pub(crate) fn trials(mut self, trials: usize) -> Self {
        self.times.trials = trials;
        self.times.denominators = self.times.denominators.min(trials);
        self.review_injection.trials = trials;
        self.network.runs = trials;
        self.network.retrainings = self.network.retrainings.min(trials);
        self.head.trials = trials;
        self.injection.trials = trials;
        self.distance.trials = trials;
        self.adaptive.trials = trials;
        self
    }
}
