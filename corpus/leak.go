package corpus

// Leaks of a pair: ways in which its document may give the claim's verdict away, or may be younger than the
// day as of which the claim is checked. They are flags of released pairs.
const (
	LeakOwnCheck   = "leak_own_fact_check"   // the claim's own review, or a fact-checker's page that quotes the claim
	LeakOtherCheck = "leak_other_fact_check" // a fact-checker's page about something else
	LeakOwnSource  = "leak_own_source"       // the document that the claim was taken from
	LeakMirror     = "leak_mirror"           // on a site that republishes corpora
	LeakLate       = "leak_after_as_of"      // it bears a date after the as-of date
	LeakUndated    = "leak_undated"          // no date, so nothing tells that it is older than the as-of date
)

// Leaks lists the leaks in the order in which reports show them.
var Leaks = []string{LeakOwnCheck, LeakOtherCheck, LeakOwnSource, LeakMirror, LeakLate, LeakUndated}
