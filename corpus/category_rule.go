package corpus

import "strings"

// categoryTags says which category a tag of a page speaks for, by Slug of the tag. Tags that name a
// place, a person, a medium or a form ("Facebook posts") say nothing and are not listed; nor are those
// that stand on pages of several categories ("Drugs", "Health Care", "Military").
var categoryTags = tagTable(map[Category]string{
	Politics: `abortion|bipartisanship|budget|campaign finance|candidate biography|census|city budget|city government|civil rights|congress|congressional rules|
county budget|county government|criminal justice|debt|deficit|economy|education|elections|ethics|federal budget|foreign policy|gays and lesbians|government|
government regulation|guns|homeland security|housing|immigration|impeachment|income|infrastructure|jobs|labor|law|legal issues|medicaid|medicare|negative campaigning|
party platform|patriotism|politics|polls and public opinion|public safety|public service|race and ethnicity|regulation|small business|social security|state budget|
state finances|states|supreme court|taxes|terrorism|trade|transparency|transportation|ukraine|unions|us politics|veterans|voter id laws|voting record|wealth|welfare|
workers|world|uk politics`,
	Celebrity: `actors|awards|box office|celebrities|celebrity|entertainment|entertainment & arts|film|gossip|movies|music|pop culture|pop|royals|style|television|touring|tv`,
	Science: `animals|astronomy|biology|climate|climate change|climate-change|earth|earthquake|environment|geology|moons|physics|planets|science|science & environment|
scicheck|space|weather|wildlife`,
	Medical: `alternative medicine|cancer|coronavirus|covid-19|covid19|devices|disease|diseases|drug safety|flu|health|health & wellness|health check|influenza|medical|
medicine|mental health|nutrition|pandemic|public health|vaccination|vaccine|vaccines`,
	History:     `ancient history|archaeology|historical|history|world war ii`,
	Commonsense: `consumer|consumer protection|consumer safety|fauxtography|food|food safety|fraud|household|money|personal finance|product safety|recall|scams|shopping`,
})

func tagTable(rows map[Category]string) map[string]Category {
	out := map[string]Category{}
	for c, row := range rows {
		for _, tag := range strings.FieldsFunc(row, func(r rune) bool { return r == '|' || r == '\n' }) {
			out[Slug(tag)] = c
		}
	}
	return out
}

// How sure a rule is: the share of pages of the captures that it gets right, rounded down.
const (
	tagConfidence     = 0.9
	defaultConfidence = 0.6
)

// RuleCategory tells what a claim is about by the tags of its page: the category that most of them speak
// for. Where none does, or two as many, it is what the source writes about; ok is false where the source
// writes about everything.
func RuleCategory(tags []string, source Category) (c Category, confidence float64, ok bool) {
	votes, all := map[Category]int{}, 0
	for _, tag := range tags {
		if c, ok := categoryTags[Slug(tag)]; ok {
			votes[c]++
			all++
		}
	}
	best, tied := Category(""), false
	for _, c := range Categories {
		switch n := votes[c]; {
		case n == 0:
		case best == "" || n > votes[best]:
			best, tied = c, false
		case n == votes[best]:
			tied = true
		}
	}
	switch {
	case best != "" && !tied:
		return best, tagConfidence * float64(votes[best]) / float64(all), true
	case source != "":
		return source, defaultConfidence, true
	}
	return "", 0, false
}
