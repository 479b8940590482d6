/* Scores of the search: titles first, then the words of prose, the API last; a claim or a figure that
   was asked for by its name is called so. Read by Sphinx (html_search_scorer) into its own
   searchtools.js. */
var Scorer = {
  // [page, title, anchor, description, score, file]
  score: (result) => {
    const [page, title, anchor, , score] = result;
    const named = /^#claim-([a-z]+)-(\w+)$/.exec(anchor);
    if (named) result[1] = `${title}: ${named[1]}/${named[2]}`;
    const drawn = /^#figure-\w+-(figure|table|theorem)_(\d+)$/.exec(anchor);
    if (drawn) result[1] = `${title}: the paper's ${drawn[1]} ${drawn[2]}`;
    if (/^(book\/api|genindex)/.test(page)) return score / 100;
    if (/^book\/(methods\/index|claims|rerun)$/.test(page)) return score + 4;
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
