//! From the margins and losses of all oracles to what attackers and KLoM say of models in one
//! state.

use serde::Serialize;

use super::attack::{Attack, judged_by_pairs};
use super::bootstrap::Bootstrap;
use super::games::{MembershipGame, SortedGames};
use super::klom::{
    KlomQuantiles, PairedKlom, UnpairedKlom, binned_klom, klom_quantiles, normal_klom,
};
use super::likelihood::{fold, likelihood_ratio};
use super::oracles::OraclePlan;
use crate::error::Result;

/// The place of the retrained models among the states of an oracle.
const RETRAINED: usize = 1;

/// What attackers found about models in one state.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Exposure {
    /// `before`, `retrain` or the name of a method.
    pub state: String,
    /// LiRA on the rows to forget; after a forget this is U-LiRA.
    pub forgotten: Attack,
    /// LiRA on rows that stay.
    pub retained: Attack,
    /// One threshold for the losses of the rows to forget.
    pub population_forgotten: Attack,
    /// One threshold for the losses of rows that stay.
    pub population_retained: Attack,
    /// Every oracle against its own retraining. It is 0 in the state `retrain`, where a model is
    /// compared with itself.
    pub paired_klom: PairedKlom,
    /// Oracles against other oracles that were retrained. In the state `retrain` it is what chance
    /// alone gives.
    pub unpaired_klom: UnpairedKlom,
}

/// Margins and losses of the attacked rows, D first, under one model.
pub(super) struct SeenRows {
    pub(super) margins: Vec<f64>,
    pub(super) losses: Vec<f64>,
}

/// What all oracles showed, in every state.
pub(super) struct OracleRecord<'a> {
    pub(super) plan: &'a OraclePlan,
    pub(super) seen: &'a [Vec<SeenRows>],
    pub(super) settings: Bootstrap,
}

/// The rows that an attack is about.
#[derive(Clone, Copy, PartialEq)]
enum AttackedGroup {
    Forgotten,
    Retained,
}

/// An estimate of KLoM from retrained and unlearned margins.
type KlomEstimate = fn(&[f64], &[f64]) -> Result<f64>;

impl OracleRecord<'_> {
    pub(super) fn exposure(&self, state: usize, name: &str) -> Result<Exposure> {
        use AttackedGroup::{Forgotten, Retained};
        Ok(Exposure {
            state: name.into(),
            forgotten: self.lira(state, Forgotten)?,
            retained: self.lira(state, Retained)?,
            population_forgotten: self.population(state, Forgotten)?,
            population_retained: self.population(state, Retained)?,
            paired_klom: PairedKlom {
                forgotten: self.paired(state, Forgotten)?,
                retained: self.paired(state, Retained)?,
            },
            unpaired_klom: UnpairedKlom {
                forgotten: self.unpaired(state, Forgotten, normal_klom)?,
                retained: self.unpaired(state, Retained, normal_klom)?,
                binned_forgotten: self.unpaired(state, Forgotten, binned_klom)?,
                binned_retained: self.unpaired(state, Retained, binned_klom)?,
            },
        })
    }

    /// The places of a group among the attacked rows.
    fn places(&self, group: AttackedGroup) -> std::ops::Range<usize> {
        let forgotten = self.plan.forgotten.len();
        match group {
            AttackedGroup::Forgotten => 0..forgotten,
            AttackedGroup::Retained => forgotten..forgotten + self.plan.retained.len(),
        }
    }

    /// For every oracle, whether each attacked row was in.
    fn inside(&self) -> Vec<Vec<bool>> {
        let draws = (0..self.plan.oracles).map(|oracle| self.plan.draw(oracle));
        draws
            .map(|draw| [draw.forgotten, draw.retained].concat())
            .collect()
    }

    fn population(&self, state: usize, group: AttackedGroup) -> Result<Attack> {
        let mut games = Vec::new();
        for (oracle, inside) in self.inside().iter().enumerate() {
            for place in self.places(group) {
                let score = -self.seen[oracle][state].losses[place];
                games.push(MembershipGame {
                    score,
                    member: inside[place],
                    cluster: oracle / 2,
                });
            }
        }
        judged_by_pairs(&SortedGames::new(games)?, &self.settings)
    }

    fn lira(&self, state: usize, group: AttackedGroup) -> Result<Attack> {
        let places = self.places(group);
        let margins: Vec<&[f64]> = self
            .seen
            .iter()
            .map(|seen| &seen[state].margins[places.clone()])
            .collect();
        let inside: Vec<Vec<bool>> = self
            .inside()
            .iter()
            .map(|inside| inside[places.clone()].to_vec())
            .collect();
        likelihood_ratio(&margins, &inside, &self.settings)
    }

    /// The margins of a row under some of the oracles, in one state.
    fn margins(&self, state: usize, place: usize, some: impl Fn(usize) -> bool) -> Vec<f64> {
        let oracles = (0..self.plan.oracles).filter(|oracle| some(*oracle));
        oracles
            .map(|oracle| self.seen[oracle][state].margins[place])
            .collect()
    }

    fn paired(&self, state: usize, group: AttackedGroup) -> Result<KlomQuantiles> {
        let inside = self.inside();
        let mut values = Vec::new();
        for place in self.places(group) {
            // Where a forgotten row had not been in, nothing was unlearned for it.
            let counts = |oracle: usize| group == AttackedGroup::Retained || inside[oracle][place];
            let retrained = self.margins(RETRAINED, place, counts);
            values.push(normal_klom(
                &retrained,
                &self.margins(state, place, counts),
            )?);
        }
        klom_quantiles(values)
    }

    /// No oracle is on both sides: for a row to forget, those that had it unlearned it and the
    /// others never saw it; for a row that stays, the halves of the cross-fit take the two sides.
    fn unpaired(
        &self,
        state: usize,
        group: AttackedGroup,
        klom: KlomEstimate,
    ) -> Result<KlomQuantiles> {
        let inside = self.inside();
        let mut values = Vec::new();
        for place in self.places(group) {
            let unlearned = |oracle: usize| match group {
                AttackedGroup::Forgotten => inside[oracle][place],
                AttackedGroup::Retained => fold(oracle) == 0,
            };
            let retrained = self.margins(RETRAINED, place, |oracle| !unlearned(oracle));
            values.push(klom(&retrained, &self.margins(state, place, unlearned))?);
        }
        klom_quantiles(values)
    }
}
