//! The words that the command understands, their defaults and their help.

mod audit;
mod copies;
mod data;
mod features;
mod folder;
mod help;
mod keys;
mod network;
mod parse;
mod release;
mod scoring;
mod service;
mod settings;
mod witness;

use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand};

pub(crate) use audit::AuditArguments;
pub(crate) use copies::{BackupArguments, RestoreArguments};
pub(crate) use data::DataArguments;
pub(crate) use features::{FeatureArguments, GapFilling, NormName};
pub(crate) use folder::{FolderArguments, IndexArguments};
pub(crate) use keys::{
    EvidenceArguments, KeysArguments, ReceiptAction, ReceiptArguments, SigningArguments, passphrase,
};
pub(crate) use network::{HeadName, NetworkArguments, PoolingName, TuningArguments};
pub(crate) use parse::{
    DelaySeconds, GridSize, NamedWeight, SubjectValue, person as subject_value,
    time as requested_time,
};
pub(crate) use release::{ExportArguments, ExportFormat, PolicyArguments};
pub(crate) use scoring::{EvaluateArguments, PenaltyValue, ScoringArguments};
pub(crate) use service::{ServeArguments, TokenAction, TokenArguments};
pub(crate) use settings::{
    AggregateName, CertifierName, CurvatureName, DeviceName, LikelihoodName, ModelArguments,
    ModelName, OverwriteArguments, SettleArguments, SuppressionWord,
};
pub(crate) use witness::{QuorumArguments, WitnessAction, WitnessArguments};

/// Fit a model; later take rows, or a person, out of it, exactly
#[derive(Debug, Parser)]
#[command(name = "efface", version, max_term_width = 100, after_help = help::MAIN)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Print the result as one JSON object
    #[arg(long, global = true, display_order = 90)]
    pub(crate) json: bool,

    /// No progress bars and no messages; results and errors stay
    #[arg(short, long, global = true, display_order = 91)]
    pub(crate) quiet: bool,

    /// Seconds to wait while another process changes the model; 0 to be refused at once
    #[arg(
        long, global = true, value_name = "SECONDS", default_value_t = 5, display_order = 92,
        value_parser = clap::value_parser!(u64).range(..=86_400)
    )]
    pub(crate) wait: u64,

    /// Who may read the models, exports and other files that a command writes, as in chmod
    #[arg(
        long, global = true, value_name = "MODE", default_value = "600", display_order = 93,
        value_parser = parse::mode
    )]
    pub(crate) mode: u32,

    #[command(flatten)]
    pub(crate) signing: SigningArguments,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(DemoArguments),
    Fit(Box<FitArguments>),
    Forget(ForgetArguments),
    Learn(LearnArguments),
    Amend(AmendArguments),
    Predict(PredictArguments),
    Evaluate(EvaluateArguments),
    Inspect(InspectArguments),
    Export(ExportArguments),
    Audit(AuditArguments),
    Log(LogArguments),
    Receipt(ReceiptArguments),
    Evidence(EvidenceArguments),
    Verify(VerifyArguments),
    Keys(KeysArguments),
    Policy(PolicyArguments),
    Settle(SettleArguments),
    Backup(BackupArguments),
    Restore(RestoreArguments),
    Index(IndexArguments),
    Witness(WitnessArguments),
    Serve(Box<ServeArguments>),
    Token(TokenArguments),
    Reproduce(ReproduceArguments),
    Completions(CompletionsArguments),
}

/// Measure the paper's tables and figures again and write a report
#[derive(Debug, Args)]
#[command(after_help = help::REPRODUCE)]
pub(crate) struct ReproduceArguments {
    /// What to measure, see below
    #[arg(value_name = "PART", default_value = "all")]
    pub(crate) parts: Vec<String>,

    /// Folder for the report and the record of the run; the same folder goes on with it
    #[arg(short, long, value_name = "DIR")]
    pub(crate) out: PathBuf,

    /// Small sizes and few trials: all of it in two minutes
    #[arg(long)]
    pub(crate) quick: bool,

    /// Folder with the real data sets [default: generated data]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,

    /// Trials of every cell [default: as many as the paper]
    #[arg(long, value_name = "N")]
    pub(crate) trials: Option<usize>,

    /// Fixes everything that is drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Threads for training [default: all cores]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,

    /// Begin anew in a folder that holds another run; its files are moved into earlier-1 there
    #[arg(long)]
    pub(crate) force: bool,
}

/// See every method forget one person, next to retraining; needs no files
#[derive(Debug, Args)]
#[command(after_help = help::DEMO)]
pub(crate) struct DemoArguments {
    /// Only write the reviews to DIR/reviews.csv, to try the other commands on
    #[arg(long, value_name = "DIR")]
    pub(crate) write: Option<PathBuf>,

    /// Overwrite DIR/reviews.csv
    #[arg(long, requires = "write")]
    pub(crate) force: bool,

    /// Reviews to write
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pub(crate) reviews: usize,

    /// Words to learn
    #[arg(long, value_name = "N", default_value_t = 1500)]
    pub(crate) vocab: usize,

    /// Threads for the large products [default: all cores]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
}

/// Fit a model and write it to a file that can forget
#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("words").args(["vocab", "vocab_file", "hash"]).requires("text")),
    after_help = help::FIT
)]
pub(crate) struct FitArguments {
    #[command(flatten)]
    pub(crate) data: DataArguments,

    /// Column to predict; repeat it for several. An svmlight file has its target in the line
    #[arg(short, long = "target", value_name = "COLUMN")]
    pub(crate) targets: Vec<String>,

    /// Model file to write [default: the data file's name with .efface]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) overwriting: OverwriteArguments,

    /// Columns to read as words
    #[arg(
        long,
        value_name = "COLUMNS",
        value_delimiter = ',',
        help_heading = "Features"
    )]
    pub(crate) text: Vec<String>,

    /// Columns with one feature per value
    #[arg(
        long,
        value_name = "COLUMNS",
        value_delimiter = ',',
        help_heading = "Features"
    )]
    pub(crate) categorical: Vec<String>,

    /// Columns that must hold numbers
    #[arg(
        long,
        value_name = "COLUMNS",
        value_delimiter = ',',
        help_heading = "Features"
    )]
    pub(crate) numeric: Vec<String>,

    /// Columns of dates such as 2026-03-02, read as days since 1970
    #[arg(
        long,
        value_name = "COLUMNS",
        value_delimiter = ',',
        help_heading = "Features"
    )]
    pub(crate) dates: Vec<String>,

    /// Columns to leave out
    #[arg(
        long,
        value_name = "COLUMNS",
        value_delimiter = ',',
        help_heading = "Features"
    )]
    pub(crate) ignore: Vec<String>,

    /// Take the N commonest words of the rows, chosen anew when rows leave [default with --text:
    /// 1500]
    #[arg(long, value_name = "N", help_heading = "Features")]
    pub(crate) vocab: Option<usize>,

    /// Use the words of FILE, one a line: they owe nothing to any row
    #[arg(long, value_name = "FILE", help_heading = "Features")]
    pub(crate) vocab_file: Option<PathBuf>,

    /// Hash words into N features: nothing is learned of them
    #[arg(long, value_name = "N", help_heading = "Features")]
    pub(crate) hash: Option<u64>,

    /// The most values of a column that is one feature per value without being named
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1000,
        help_heading = "Features"
    )]
    pub(crate) max_levels: usize,

    #[command(flatten)]
    pub(crate) features: FeatureArguments,

    /// Column that names each row, for `forget --ids` [default: the position in the file]
    #[arg(long, value_name = "COLUMN", help_heading = "Who is who")]
    pub(crate) id: Option<String>,

    /// Column that names the person behind each row, for `forget --subject`
    #[arg(long, value_name = "COLUMN", help_heading = "Who is who")]
    pub(crate) subject: Option<String>,

    /// What to fit, see below
    #[arg(long, value_enum, value_name = "MODEL", default_value_t = ModelName::Ridge, help_heading = "Model")]
    pub(crate) model: ModelName,

    /// Take the target's values as classes; ridge alone needs to be told
    #[arg(long, help_heading = "Model")]
    pub(crate) classify: bool,

    /// Target values that are one class, all others being the other; implies --classify
    #[arg(
        long,
        value_name = "VALUES",
        value_delimiter = ',',
        allow_hyphen_values = true,
        help_heading = "Model"
    )]
    pub(crate) positive: Vec<String>,

    /// What rows count for by their class: balanced, so that all classes count alike, or
    /// CLASS=W[,CLASS=W…]
    #[arg(long, value_name = "HOW", value_delimiter = ',', value_parser = parse::class_weight, help_heading = "Model")]
    pub(crate) class_weight: Vec<NamedWeight>,

    /// Column that says how much each row counts
    #[arg(long, value_name = "COLUMN", help_heading = "Model")]
    pub(crate) weight: Option<String>,

    /// Write a recovery key to a new FILE, to be kept in another place: it hands over where the
    /// signing key is lost
    #[arg(long, value_name = "FILE", help_heading = "Keys")]
    pub(crate) recovery_key: Option<PathBuf>,

    /// Encrypt rows and parameters in the model file, under a key that lies in MODEL.key
    #[arg(long, help_heading = "Keys")]
    pub(crate) encrypt: bool,

    #[command(flatten)]
    pub(crate) settings: ModelArguments,

    #[command(flatten)]
    pub(crate) scoring: ScoringArguments,

    #[command(flatten)]
    pub(crate) network: NetworkArguments,
}

/// Take rows, or all rows of a person, out of a model
#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("who").args(["ids", "ids_file", "subject", "requests"]).required(true)),
    group(ArgGroup::new("where").args(["model", "models"]).required(true)),
    after_help = help::forget()
)]
pub(crate) struct ForgetArguments {
    /// Model file
    pub(crate) model: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) folder: FolderArguments,

    /// Rows to forget, by id, with commas
    #[arg(
        long,
        value_name = "IDS",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    pub(crate) ids: Vec<String>,

    /// Rows to forget, one id a line; - for standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) ids_file: Option<PathBuf>,

    /// Requests, a JSON object a line: one receipt each, one commit; see below. - for standard
    /// input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["request", "requested_at", "receipt", "models"])]
    pub(crate) requests: Option<PathBuf>,

    /// Person whose rows to forget
    #[arg(long, value_name = "COLUMN=VALUE", value_parser = parse::person)]
    pub(crate) subject: Option<SubjectValue>,

    /// How to forget, see below
    #[arg(long, value_name = "METHOD", default_value = "auto", hide_possible_values = true, value_parser = parse::methods())]
    pub(crate) method: String,

    /// Relative distance to retraining that auto aims at; it retrains where nothing less will do
    #[arg(long, value_name = "X", allow_hyphen_values = true)]
    pub(crate) tolerance: Option<f64>,

    /// Most time that training a network anew may take, such as 10s; if it takes longer, nothing
    /// changes, and the cost and effect of each method are listed [default: no limit]
    #[arg(long, value_name = "DURATION", value_parser = parse::duration)]
    pub(crate) at_most: Option<DelaySeconds>,

    /// Steps of newton on a logistic or softmax model [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) steps: Option<usize>,

    /// Let newton on a logistic or softmax model read the rows to measure how near it came
    #[arg(long)]
    pub(crate) measure: bool,

    /// Set the weights of columns that no retained row has to 0 after an approximate method; the
    /// others always do
    #[arg(long)]
    pub(crate) clear_dead_columns: bool,

    /// Accept a result of an approximate method that is no nearer to retraining than the model is
    /// now; otherwise the request is refused
    #[arg(long)]
    pub(crate) allow_worse: bool,

    /// With --method retrain, for k-means and shards: draw a new seed, so that requests that were
    /// chosen after looking at the published model leave no trace
    #[arg(long)]
    pub(crate) new_seed: bool,

    /// Rounds of projection_residual on the head of a network [default: 1]
    #[arg(long, value_name = "T")]
    pub(crate) rounds: Option<usize>,

    /// Share of the way that a round of projection_residual goes, above 0 and at most 1 [default:
    /// 1]
    #[arg(long, value_name = "α", allow_hyphen_values = true)]
    pub(crate) step: Option<f64>,

    #[command(flatten)]
    pub(crate) tuning: TuningArguments,

    /// Say what would happen and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Say in whole sentences what the forget does not cover
    #[arg(long)]
    pub(crate) explain: bool,

    /// Your name for the request: it has one effect, however often it comes, and a receipt whatever
    /// it is
    #[arg(long, value_name = "ID", help_heading = "Receipt")]
    pub(crate) request: Option<String>,

    /// Pass over rows that are not there; the receipt says `partial` or `not_found`
    #[arg(long, help_heading = "Receipt")]
    pub(crate) allow_missing: bool,

    /// When the person asked, such as 2026-03-02T09:15:00.250Z
    #[arg(long, value_name = "TIME", value_parser = parse::time, help_heading = "Receipt")]
    pub(crate) requested_at: Option<efface_receipt::Time>,

    /// Write the receipt, with all that is needed to check it, to FILE
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "dry_run",
        help_heading = "Receipt"
    )]
    pub(crate) receipt: Option<PathBuf>,

    /// Overwrite the receipt file
    #[arg(long, requires = "receipt", help_heading = "Receipt")]
    pub(crate) force: bool,
}

/// Add rows to a model
#[derive(Debug, Args)]
#[command(after_help = help::LEARN)]
pub(crate) struct LearnArguments {
    /// Model file
    pub(crate) model: PathBuf,

    #[command(flatten)]
    pub(crate) data: DataArguments,

    /// Your name for the request: it has one effect, however often it comes
    #[arg(long, value_name = "ID", help_heading = "Receipt")]
    pub(crate) request: Option<String>,

    /// Folder of the pretrained encoder [default: where it was at the fit]
    #[arg(long, value_name = "DIR")]
    pub(crate) encoder: Option<PathBuf>,
}

/// Replace rows of a model by corrected ones
#[derive(Debug, Args)]
#[command(after_help = help::AMEND)]
pub(crate) struct AmendArguments {
    /// Model file
    pub(crate) model: PathBuf,

    #[command(flatten)]
    pub(crate) data: DataArguments,

    /// Folder of the pretrained encoder [default: where it was at the fit]
    #[arg(long, value_name = "DIR")]
    pub(crate) encoder: Option<PathBuf>,
}

/// Score the rows of a file
#[derive(Debug, Args)]
#[command(after_help = help::PREDICT)]
pub(crate) struct PredictArguments {
    /// Model file
    pub(crate) model: PathBuf,

    #[command(flatten)]
    pub(crate) data: DataArguments,

    /// Folder of the pretrained encoder [default: where it was at the fit]
    #[arg(long, value_name = "DIR")]
    pub(crate) encoder: Option<PathBuf>,

    /// File to write instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Overwrite the output file
    #[arg(long)]
    pub(crate) force: bool,
}

/// Say what a model file holds
#[derive(Debug, Args)]
pub(crate) struct InspectArguments {
    /// Model file
    pub(crate) model: PathBuf,

    /// Say in whole sentences what a forget does not cover
    #[arg(long)]
    pub(crate) explain: bool,
}

/// List what was done to a model, or print the proofs of it
#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("part").args(["receipt", "checkpoint", "since", "raw", "for_witness", "add_cosignatures"])),
    after_help = help::LOG
)]
pub(crate) struct LogArguments {
    /// Model file
    pub(crate) model: PathBuf,

    /// One receipt, by number or id: its JSON, or with --output its file with all that is needed to
    /// check it
    #[arg(long, value_name = "RECEIPT")]
    pub(crate) receipt: Option<String>,

    /// The signed head of the log
    #[arg(long)]
    pub(crate) checkpoint: bool,

    /// Proof that the log continues the one of its first N receipts
    #[arg(long, value_name = "N")]
    pub(crate) since: Option<u64>,

    /// What a witness is asked that signed the head of N receipts last, 0 for none
    #[arg(long, value_name = "N")]
    pub(crate) for_witness: Option<u64>,

    /// Keep the signature lines in FILE with the head of the log, those of the witnesses in
    /// --witness; - for standard input
    #[arg(long, value_name = "FILE", requires = "witness")]
    pub(crate) add_cosignatures: Option<PathBuf>,

    /// File with the public keys of witnesses
    #[arg(long, value_name = "FILE", requires = "add_cosignatures")]
    pub(crate) witness: Option<PathBuf>,

    /// Every receipt as it was signed, one a line in base64
    #[arg(long)]
    pub(crate) raw: bool,

    /// File to write instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Overwrite the output file
    #[arg(long)]
    pub(crate) force: bool,
}

/// Check a receipt against a public key, or a model against its log
#[derive(Debug, Args)]
#[command(after_help = help::VERIFY)]
pub(crate) struct VerifyArguments {
    /// Receipt, evidence pack or model file
    pub(crate) file: PathBuf,

    /// Compute a model from its rows again, however many there are
    #[arg(long, conflicts_with = "since")]
    pub(crate) rows: bool,

    /// File with an older head of the log, as `log --checkpoint` printed it: the log must continue
    /// it
    #[arg(long, value_name = "CHECKPOINT")]
    pub(crate) since: Option<PathBuf>,

    /// File with the public keys, as `efface keys` prints them
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) quorum: QuorumArguments,
}

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = help::COMPLETIONS)]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_holds_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn ids_may_start_with_a_hyphen() {
        for line in [&["--ids", "-5,7"][..], &["--ids=-5,7"]] {
            let words = ["efface", "forget", "m.efface"].iter().chain(line).copied();
            let Command::Forget(forget) = Cli::try_parse_from(words).unwrap().command else {
                panic!()
            };
            assert_eq!(forget.ids, ["-5", "7"]);
        }
    }

    #[test]
    fn sources_of_words_exclude_each_other_and_need_text() {
        let parse = |rest: &[&str]| {
            let start = ["efface", "fit", "a.csv", "--target", "y"];
            Cli::try_parse_from(start.iter().chain(rest).copied()).is_ok()
        };
        assert!(parse(&["--text", "t", "--vocab", "9"]));
        assert!(parse(&["--text", "t", "--hash", "9"]));
        assert!(!parse(&["--text", "t", "--hash", "9", "--vocab", "9"]));
        assert!(!parse(&["--vocab", "9"]));
    }
}
