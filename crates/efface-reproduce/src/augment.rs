//! Articles made from others, for the rows "Retrain (synthetic)" of table 2: a word replaced by a
//! synonym, left out, or moved.

use std::fs::File;
use std::io::BufReader;

use efface::features::{Synonyms, TextAugmenter};

use crate::data::{DataFolder, LabelledText};
use crate::error::{Error, Result};

/// `count` new texts with the labels of those they were made from. Synonyms come from the data
/// folder, or from the core's own small table.
pub(crate) fn augmented(
    data: &DataFolder,
    texts: &[LabelledText],
    count: usize,
    seed: u64,
) -> Result<Vec<LabelledText>> {
    let synonyms = match data.synonyms()? {
        None => Synonyms::built_in(),
        Some(path) => {
            let file = File::open(&path).map_err(|cause| Error::file(&path, "read", cause))?;
            Synonyms::read(BufReader::new(file)).map_err(|fault| Error::BadData {
                path,
                what: format!("cannot be used: {fault}"),
            })?
        }
    };
    let words: Vec<&str> = texts.iter().map(|text| text.text.as_str()).collect();
    let made = TextAugmenter::new(&synonyms, seed)
        .more(&words, count)
        .map_err(efface::Error::from)?;
    Ok(made
        .into_iter()
        .map(|(at, text)| LabelledText {
            label: texts[at].label.clone(),
            text,
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::news;

    #[test]
    fn new_articles_keep_their_topic_and_are_not_the_old_ones() {
        let texts = news(20, 1);
        let made = augmented(&DataFolder::new(None), &texts, 10, 3).unwrap();
        assert_eq!(made.len(), 10);
        assert_eq!(
            made,
            augmented(&DataFolder::new(None), &texts, 10, 3).unwrap()
        );
        assert!(
            made.iter()
                .all(|new| !texts.contains(new) && texts.iter().any(|old| old.label == new.label))
        );
    }
}
