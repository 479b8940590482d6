/* Scores of the search: titles first, then the words of prose, the API last. Read by Sphinx
   (html_search_scorer) into its own searchtools.js. */
var Scorer = {
  // [page, title, anchor, description, score, file]
  score: ([page, , , , score]) => {
    if (/^(book\/api|_modules|genindex)/.test(page)) return score / 100;
    if (/^book\/(settings|claims|rerun|explorer)$/.test(page)) return score + 4;
    return score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 30,
  partialTitle: 14,
  term: 5,
  partialTerm: 2,
};
