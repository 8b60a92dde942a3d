//! What the help says after the options.

pub(super) const MAIN: &str = "\
Results go to standard output, messages and errors to standard error.

Exit codes:
  0  done
  1  internal error
  2  the command line makes no sense
  3  the data cannot be used
  4  a row, person or column was not found
  5  refused: no rows would be left, the method cannot be used here, the output exists, a receipt
     does not hold, the key file is missing or open to others
  6  the model file cannot be used: not ours, newer, damaged or locked
  7  a file cannot be read or written
  8  done and durable, but not within the tolerance: the distance to retraining is bounded by more
     than counts as equal, so that the result is claimed to be approximate

No file that a command writes replaces a model, a key, or what is no plain file (a device, a pipe,
a folder); other files are overwritten with --force only; none may be a file that the command
reads, by whatever name. A new file can be read by its owner alone unless --mode says otherwise.
What a killed command left behind is overwritten and removed by the next one in the same folder.

Start with `efface demo`; `efface help forget` explains a command.";

pub(super) const DEMO: &str = "\
Writes 20000 product reviews of its own, fits a ridge model on their words, and takes out one person
who uses a word that nobody else does, by every method. Then a model file in a temporary folder
forgets the same person, and its receipt is verified. Takes less than ten seconds.";

pub(super) const REPRODUCE: &str = "\
The parts:
  table1      how long forgetting takes, as a share of retraining; and an injected feature in reviews
  table2      how long a text network takes, and its accuracy
  table3      an injected feature in a network's head
  table4      what is left of an injected feature, by sparsity
  table5      its weight before
  l2          the distance to retraining on outliers, of Izzo et al.
  figure1     table 3 against the number of rows
  figure2     table 3 against the width
  membership  what an attacker can tell, which the paper does not ask
  all         all of these

DIR/index.html is the report, with the paper's numbers beside ours; every number is in a CSV beside
it. Each finished trial is written to DIR/state.jsonl: a run that was interrupted goes on when the
same command is given again.

Examples:
  efface reproduce --quick --out report
  efface reproduce table4 l2 --out report-linear
  efface reproduce --data data --out report-full";

pub(super) const FIT: &str = "\
Without --text every column but target, id, subject and weight is a feature: a number when all its
values are, else one feature per value. With --text only the columns named as text, categorical,
numeric or dates are. Options that take COLUMNS can be repeated and take several names with commas.

--where keeps the rows for which an expression holds: column = value with = != < <= > >=, and, or,
not and brackets; names and values with blanks stand in quotes, and '' is a cell that holds
nothing. Numbers compare as numbers, everything else letter by letter, as dates such as 2026-03-02
may. Rows without --id keep their positions in the whole file. predict, evaluate, learn and amend
take the same options.

The models:
  ridge        numbers, or classes with --classify; forgets exactly, in closed form
  logistic     two classes; forgets to a distance that it bounds, or certified with --epsilon
  softmax      three classes or more; likewise
  svm          classes; squared hinge loss; forgets exactly, by Newton steps over the rows that stay
  poisson      counts; logarithmic link; likewise
  naive-bayes  classes; counts, what is there, or numbers (--likelihood); forgets exactly, by
               subtracting
  kmeans       --clusters K groups of like rows, no target; forgets exactly: a lattice or a tree
               keeps most of the work from depending on any one row
  bilstm       classes of texts: a bidirectional LSTM over word vectors, and a linear head
  lstm         the same with LSTM layers on top of each other
  minilm       the same with a pretrained encoder, --encoder DIR, which stays as it is

The head of a network forgets like ridge (or like softmax, with --head softmax). What a trained
encoder learned from the rows stays in it: such a forget is approximate. `forget --method retrain`
trains the whole network anew, and with --sisa a forget trains one shard. While an encoder is
trained, ctrl-C stops it and keeps the best so far; a second one ends the command.

What --curvature keeps of the matrix A = XᵀX + λI, d × d for d features:
  factor     its Cholesky factor
  inverse    its inverse
  rows       XA⁻¹, a vector a row: the fastest forget, the most memory
  iterative  nothing: conjugate gradients over the rows, for very many features
  auto       factor, or iterative where passes over wide sparse rows cost less than half
The file holds A alone in the first three, and this command works from a factor; inverse and rows
are for programs that keep a model open. Of a classifier auto keeps the Hessian where that pays, as
it was at the fit: with the rows that are left it can tell one that left. iterative keeps none.

--replace MODEL is for refits by night: the new fit takes the place of the model in one step, at
the end. Forgets go on while it runs; a fit that would bring back what was forgotten, before or
meanwhile, is refused. Networks are fitted anew in the same way.

--test, --holdout and --cv say how good the model is beside the best constant answer, and store it
with the model (`efface inspect`) until its rows change; a model that is worse is warned of. A
held-out row is not in the model: a forget does not find it, and takes nothing out for it. Ridge
is judged by leave-one-out too, in closed form, over a sample of the rows of a large table.
--lambda auto sees all rows of the model: `not covered` names the choice from then on.

With --epsilon and --delta a logistic model is trained with noise, on rows scaled to norm 1. What a
forget leaves behind is then hidden by the noise, up to a budget that the report accounts for.

With --sisa 8x4 the rows are split into 8 shards of 4 slices, each shard is a model of its own, and
together they answer by vote or mean. Not for kmeans, and not with --epsilon.

The lattice of k-means has cells of a fixed side, --cell, in the units of the features: a smaller
one places centres more finely and makes a forget fit again more often. Bring the features to like
units first; no scale is read off the data, because a forget could not take it back.

Examples:
  efface fit reviews.csv --text text --target stars --subject user_id --id review_id
  efface fit reviews.csv --model naive-bayes --text text --target stars --id review_id
  efface fit reviews.csv --model softmax --text text --target stars --sisa 8x4 --id review_id
  efface fit reviews.csv --text text --target stars --lambda auto --holdout 0.2 --id review_id
  efface fit tonight.csv --text text --target stars --id review_id --subject user_id \\
    --replace reviews.efface
  efface fit points.csv --model kmeans --clusters 8 --cell 0.1 --id point
  efface fit news.csv --model bilstm --text text --target topic --embeddings glove.txt --id doc
  efface fit news.csv --model minilm --text text --target topic --encoder all-MiniLM-L6-v2 --id doc";

/// With the table of methods that the library keeps.
pub(super) fn forget() -> String {
    format!(
        "\
The methods, for d features, c classes, n rows, k of them to forget, s non-zeros a row:
{}
An approximate method leaves a trace of the rows, which the report bounds. A method that makes no
sense for a model is refused.

The head of a network forgets by the methods of its family, and its encoder stays. If the encoder
was trained on the rows, the claim is approximate, the command ends with code 8 where the method
promises more, and the distance of the head is reported apart. retrain_head makes a new head;
retrain trains the whole network anew, with the settings and the seed of the fit, and so does auto
with a --tolerance. --at-most limits the time of that: a training that is expected to take longer
is stopped early, nothing changes, and the error lists the cost and the effect of each method.
A bilstm or lstm can also be trained further, encoder and all. These are the methods that papers
compare with; they are approximate, nothing bounds what they leave, and they cost N epochs:
  fine_tune     trains on the rows that stay
  neggrad_plus  likewise, and raises the loss of the rows to forget (Kurmanji et al. 2023)
  scrub         stays near the old network on the rows that stay and leaves it on the others
                (Kurmanji et al. 2023)

The model file changes in one step: the rows are out of parameters, curvature and file, or nothing
happened. The report bounds the distance to a model that was fitted without the rows. A signed
receipt is in the model's log in the same step. So a list of 100,000 ids that is cut short has
done nothing, and can be given again; under a --request name it has one effect however often it is
given.

A result is called exact when its relative bound is at most the tolerance: --tolerance, or else
the model's own. A result that falls short is retrained, but for the head of a network. If that
falls short too, the change is made and called approximate, a warning says what it is bounded by,
and the command ends with code 8. learn and amend do the same.

A file of --requests holds a JSON object a line: {{\"subject\": \"user_id=u7\"}} or {{\"ids\":
[\"r1\", \"r2\"]}}, and perhaps \"request\", \"requested_at\" and \"allow_missing\". What can be
done together is one update and one commit; a request that fails leaves the others done, and the
exit code is that of the first that failed.

Examples:
  efface forget reviews.efface --subject user_id=u1042
  efface forget reviews.efface --ids r00017,r00023 --dry-run
  efface forget reviews.efface --ids-file - --json < ids.txt
  efface forget reviews.efface --subject user_id=u7 --request T-1042 --receipt receipt.cose
  efface forget --models models --subject user_id=u7 --request T-1042 --receipts receipts",
        efface::methods::table::plain()
    )
}

pub(super) const LEARN: &str = "\
The file needs the columns that the model was fitted on, and ids that are new. Without ids, the same
file learned twice doubles its rows: under a --request name it has one effect however often it is
given, and without one a warning tells of it.";

pub(super) const AMEND: &str = "\
The file needs the columns that the model was fitted on, and ids that the model holds.";

pub(super) const PREDICT: &str = "\
Prints a line per row: its id, or else its position in the file from 0, which names the row where
the model has no id column; the prediction; and for classes the scores and, where the model has
them, the probabilities (of two classes, that of the second). A model of clusters prints the
nearest and the distance to each. With --json each line is an object.

Where the file has the target too, how good the predictions are is said beside them, on standard
error; `efface evaluate` says more.";

pub(super) const EVALUATE: &str = "\
The file has the model's columns and its target. Reported are, for classes: accuracy, log-loss,
the area under the ROC curve (of several classes, the mean of each against the rest), and
precision, recall and F1 of every class; for numbers: RMSE and R². In brackets stands what the
best constant answer reaches on the same rows: their commonest class, the shares of their classes,
their mean. Every row counts once, whatever its weight. A row of a class that the model does not
know counts as wrong.

Example:
  efface evaluate reviews.efface test.csv";

pub(super) const EXPORT: &str = "\
An export is a copy: a later forget does not reach it. The log lists it, and a forget marks it as
withdrawn; export again afterwards. Only the current version can be exported: no other is kept.

From two exports with few requests between them, the rows that left in between can be computed. So
an export waits until ten requests to forget or amend have come since the last one; the first
needs none, and neither does noise that is calibrated (`efface policy --epsilon`).
--expose-forgotten gives that up for one export, and its receipt says so.";

pub(super) const AUDIT: &str = "\
The model file is only read: the rows are forgotten in a copy in memory, and a second model is
truly retrained without them. Reported are, for every method beside retraining:
  twins      rows that stay and equal one to forget: looked for first
  distance   to the retrained parameters, as a share of the way, and of predictions and classes
  relearned  gradient steps back to the former loss on these rows, beside those of retraining
  injection  what is left of a planted feature that only these rows have; 0 is perfect
  attacks    U-LiRA, LiRA and a loss threshold over many models (the oracles): AUC 0.5 is a coin
  KLoM       how different margins are from those of retrained models, in nats: paired (every oracle
             and its own retraining) and unpaired (oracles and other, retrained ones)
  utility    accuracy, RMSE and log-loss on rows that stay, and on those of --held-out
docs/audit.md defines each and says what it cannot show. Not for networks in shards.

Of a network whose encoder was trained on its rows, methods are compared with a new head on that
encoder (retrain_head), and one whole network is always trained anew (retrain_network): the first
line has the accuracy of all of them on the rows to forget. fine_tune, neggrad_plus and scrub are
compared as whole networks: accuracy on rows that stay, go and were held out.

With --file, the rows have left the model already: the model is measured as it is.

Examples:
  efface audit reviews.efface --subject user_id=u1042
  efface audit reviews.efface --sample 20 --method exact,influence,projection_residual --out audit
  efface audit reviews.efface --forget r00017,r00023 --held-out test.csv --json
  efface audit reviews.efface --file erased.csv --record";

pub(super) const LOG: &str = "\
Every fit, forget, learn, amend, export, settle and change of keys leaves a signed receipt in a log
that only grows. Keep the checkpoints that you have seen: with --since, a later log can prove that
it continues them.

Examples:
  efface log reviews.efface
  efface log reviews.efface --receipt 3 -o receipt.cose
  efface log reviews.efface --checkpoint > seen.txt";

pub(super) const VERIFY: &str = "\
A receipt is checked offline, with the public key alone: its signature, its place in the log, the
head of the log; so is every receipt of an evidence pack. Of a model, commitments, hashes, log,
training set and distance bound are computed anew from what is stored; sums and bound also from
the rows, where the model is small or with --rows. What could not be checked is listed as not
known.

Examples:
  efface keys reviews.efface > reviews.pub
  efface verify receipt.cose --key reviews.pub
  efface verify pack.zip --key reviews.pub
  efface verify reviews.efface --key reviews.pub";

pub(super) const EVIDENCE: &str = "\
The pack is a ZIP file: a page to read (summary.html), the receipts with their proofs, their JSON,
the audits on record, what is known of exports, the head of the log and the public keys. The page
says what of EDPB Opinion 28/2024 each part speaks to, and what it does not show. It names no
person, no row and no request: those are commitments. It is no legal opinion.

The file does not know which receipts are of one person: a receipt's commitment to the person
opens with a number that was told when the request was answered (`subject_opening`), and is kept
nowhere else.

Examples:
  efface evidence reviews.efface --request T-1042 -o pack.zip
  efface evidence reviews.efface --subject user_id=u1042 --opening 3f0c…e1 -o pack.zip";

pub(super) const KEYS: &str = "\
The public keys are printed one a line, oldest first; a key that handed over is followed by `until
N`, the receipt in which it did. Give the list to whoever checks receipts, and again after a
rotation: any key of it verifies the receipts of its time and before, and a key that handed over
signs nothing later.

The secret half lies beside the model, in MODEL.key, for its owner alone, with the seed of the
noise on exports, which --rotate leaves as it is. Without it the model cannot change: no receipt,
no forgetting. A recovery key, made by `efface fit --recovery-key FILE` or with --rotate, and kept
in another place, hands over where MODEL.key is lost.

A model fitted with --encrypt has its rows and parameters under a key that is made from that seed.
--destroy overwrites the seed: then nothing opens them, not in the model, not in a backup, not in
a block that a disk has set aside. The names of columns and classes, the counts and the log are
not encrypted.

Examples:
  efface keys reviews.efface > reviews.pub
  efface keys reviews.efface --rotate --recovery-key /media/safe/reviews.recovery
  efface keys reviews.efface --recover /media/safe/reviews.recovery
  efface keys reviews.efface --rotate --next-sign-with './sign-with-kms.sh'";

pub(super) const POLICY: &str = "\
Whoever holds two versions of a model that differ by one row can compute that row (Bertran et al.
2024). So an export waits until ten forget requests have come together since the last one; with
noise by --epsilon it need not. --min-batch asks for more. Fewer, or a --delay after which it
waits no longer, are taken with --expose-forgotten alone, which says what is given up. Predictions
are made with the current model at any time: an older one would still know what was forgotten.
Requests are counted, not rows: a request is a person.

With --epsilon and --delta, exported parameters get noise of the analytic Gaussian mechanism
(Balle and Wang 2018): whoever sees the new export can hardly tell it from the last one published
again. --sensitivity is the distance that the noise hides, and an export that moved further is
refused; without it the distance since the last export without noise is measured, and the size of
the noise tells it. Noise follows from a secret seed in MODEL.key and from the version: a version
that is exported again gives the same copy, and leaves with no other noise. The receipt of an
export says what it spends and what all of them add up to. The number of rows and the names of
features are exported as they are.

With --settle-after or --settle-within, a forget makes the new parameters durable and returns; the
rows' bytes are overwritten, and their share of the curvature folded out, when so many rows wait or
the first of them is so old. Until then nothing that is asked of the model reads them.";

pub(super) const WITNESS: &str = "\
A witness keeps the head of every log that it watches, and signs a newer one only if the log's key
has signed it and a proof shows that it continues the head that was signed last. Whoever demands
the signatures of witnesses (`efface verify --witness KEYS --quorum N`) cannot be shown a second
history. The forms are those of C2SP tlog-witness and tlog-cosignature: what `cosign` reads is the
body of add-checkpoint, what it prints is the answer, and a refusal names the HTTP status, so that
a server can be put around it. A witness is worth something where somebody else runs it. A policy
with witnesses exports nothing before they have signed the head of the log.

Examples:
  efface witness init seen.json --name witness.example.org/1 > witness.pub
  efface witness watch seen.json reviews.pub
  efface log reviews.efface --for-witness 0 | efface witness cosign seen.json > lines.txt
  efface log reviews.efface --add-cosignatures lines.txt --witness witness.pub
  efface log reviews.efface --receipt 1 -o receipt.cose
  efface verify receipt.cose --key reviews.pub --witness witness.pub
  efface policy reviews.efface --witness witness.pub --quorum 1";

pub(super) const INDEX: &str = "\
Asking a model takes milliseconds, and `forget --models DIR` asks every one of them. The index is
for folders of thousands: with --by-index only those are asked that it lists, and those that have
changed since; the others are told as not asked. It is written to DIR/subjects.index, and its key
to DIR/subjects.index.key, both for their owner alone: who has both can test whether a person is
in a model. It can be removed and made anew at any time.

Example:
  efface index models
  efface forget --models models --by-index --subject user_id=u1042 --request T-1042";

pub(super) const BACKUP: &str = "\
No forget reaches a copy, and the key file is not in it. Keep a copy of the log (--log-only) that
is as new as can be, in another place: with it `efface restore` brings an older copy of the model
up to date. It holds commitments and keyed hashes, and no row.

Examples:
  efface backup reviews.efface -o monday.efface
  efface backup reviews.efface --log-only -o /media/safe/reviews.log";

pub(super) const RESTORE: &str = "\
The rows of the copy that have left the model since are taken out again, and the log goes on where
the newer one ended, with a receipt of the restore; only then does the model get its name. The
newer log must be signed by the keys of the model and continue that of the copy. Rows that were
learned or corrected since the copy was made are in no file any more: they are counted, and can be
learned again. What must not come back, answers to named requests, the list of exports and the
policy come from the newer log. The key file is expected beside MODEL. Both files are only read.

Example:
  efface restore monday.efface --log /media/safe/reviews.log -o reviews.efface";

pub(super) const SETTLE: &str = "\
A forget overwrites the rows' bytes before it returns, unless the policy of the model lets them
wait; this command scrubs those that wait. Empty places stay in the file until most of it is
empty, or until this command.";

pub(super) const COMPLETIONS: &str = "\
Example:
  efface completions bash > ~/.local/share/bash-completion/completions/efface";

pub(super) const SERVE: &str = "\
Every file DIR/NAME.efface is the model NAME; files that come, go or change are followed within a
second. The page is at the address itself, the description of the API at /openapi.json;
docs/service.md explains both. SIGTERM or Ctrl-C finishes the requests in flight and stops.

A request that was accepted and could not be done at once is kept in DIR/inbox until it is done.
Listening on other addresses than this machine's own needs a certificate and tokens.

Examples:
  efface serve --demo
  efface token create tokens.json --name ann --scope erase,audit
  efface serve models --tokens tokens.json";
