//! Every family of models behind two types, for code that does not know at compile time which
//! family it has: the engine, which opens a file, and the command, which reads a name.
//!
//! A [`Recipe`] fits a [`Model`]. A family implements [`FamilyRecipe`] for its recipe and
//! [`FamilyModel`] for its model, in a folder of its own, and has one line in the registry of
//! `models/mod.rs`. Nothing else here or in other crates lists families.

mod batches;
mod forget;
mod model;
mod parameters;
mod recipe;
mod rule;
mod scorer;
mod shards;

pub use batches::BatchedFit;
pub use forget::{MethodOnAny, MethodOptions};
pub use model::{ClassReweighting, FamilyModel, LeftOutRow, Model, ModelChanges};
pub use parameters::{NamedParameters, no_parameters};
pub use recipe::{
    FamilyRecipe, Recipe, RecipeDescription, RecipeFits, RecipeTask, RegisteredFamily, RowsBeside,
    ScoreKind, no_shards,
};
pub use scorer::{LinearScorer, ModelScorer, ScoresRows};
pub use shards::{ShardModel, ShardTrainer};
