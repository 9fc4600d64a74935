package llm

import "strings"

// lexSet makes a set of the words of a text.
func lexSet(words string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}

// lexStop holds words that say nothing about the subject of a text. Negations and opposites among
// them are read before they are passed over.
var lexStop = lexSet(`a about actually after again all already also although am an and another any anybody anyone anything are around as at be because
been before being both but by can cannot could did do does doing done each either else even ever every everybody everyone everything few for from
get gets getting got had has have having he her here hers herself him himself his how however i if in indeed instead into is it its itself just
least less let like likely lot lots many may maybe me might mine more most much must my myself neither never no nobody none nor not nothing now of off often
on once one ones only onto or other others our ours ourselves out over own perhaps quite rather really s same shall she should simply since so some
somebody someone something soon still such than that the their theirs them themselves then there therefore these they this those though through
thus to together too during toward towards under unless until up upon us very via was we well were what whatever when where whether which while who whom whose
why will with within without would yes yet you your yours yourself than t ll re ve d m dont said say says saying told tell tells according per
okay ok etc almost always throughout away enough anyway basically literally currently recently today yesterday tomorrow ago both put puts putting`)

// lexWeak holds words so common that sharing one relates two texts little.
var lexWeak = lexConceptSet(`able add area ask bad become begin believe big bring call case change city claim come country day different end expect fact far feel
find first full general give go good government great group happen hard have help high home hour however idea important include issue job keep kind
know large last late leave life line little live local long look main major make man matter mean member minute money month morning move name national
need new next nothing number official old open order own part pay people person place plan play point post president problem public question reason
real record report result right run second see seem set share show side small special start state stay story system take talk tell thing think time
top total town true try turn two use want way week woman word work world write wrong year young staff several sort million thousand hundred billion percent`)

// lexFiller holds content words that may stand in an insertion between commas without ending a clause.
var lexFiller = lexSet(`fact course truth reality short sum contrast fortunately unfortunately sadly finally`)

// lexCalendar holds words that have a capital without being names.
var lexCalendar = lexSet(`monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september october
november december mon tue wed thu fri sat sun jan feb mar apr jun jul aug sep sept oct nov dec`)

var lexAbbreviations = lexSet(`mr mrs ms dr prof sen rep gov gen lt col sgt capt rev hon st mt ft jr sr vs etc inc ltd co corp dept est approx no nos vol
fig al cf eg ie jan feb mar apr jun jul aug sep sept oct nov dec`)

var lexPronouns = lexSet(`i he she it they we you this that these those there`)

var lexBe = lexSet(`is was are were be been isn wasn aren weren s`)

// lexConjunctions begin a clause of their own.
var lexConjunctions = lexSet(`but although though while whereas because since however unless whether if which who where when after before until so despite nor`)

// lexNegators turn what follows them in their clause into its opposite.
var lexNegators = lexSet(`not never no none nobody nothing neither nor without cannot hardly scarcely rarely seldom`)

// lexUnmarked writes contractions whose apostrophe was left out as their verb.
var lexUnmarked = map[string]string{"dont": "do", "doesnt": "does", "didnt": "did", "isnt": "is", "arent": "are", "wasnt": "was", "werent": "were",
	"hasnt": "has", "havent": "have", "hadnt": "had", "cant": "can", "couldnt": "could", "wouldnt": "would", "shouldnt": "should"}

// lexAvoiders are negations made with a verb: failed to, refused to, rather than, instead of.
var lexAvoiders = map[string]string{"fail": "to", "refus": "to", "declin": "to", "neglect": "to", "unabl": "to", "forget": "to", "rather": "than", "instead": "of", "omit": "to"}

// lexBars keep somebody from doing what follows "from".
var lexBars = lexConceptSet(`ban bar block forbid keep prevent prohibit stop discourage exempt`)

// lexCancels undo a plan that is named before or behind them in their clause.
var lexCancels = lexConceptSet(`cancel scrap abandon shelve overturn reverse revoke rescind repeal halt withdraw`)

// lexOccurs are verbs whose denial denies what stands before them: the closure never happened.
var lexOccurs = lexSet(`happen occur proceed materialise materialize exist place ahead through`)

// lexHedges keep a sentence from asserting what it says.
var lexHedges = lexSet(`may might could perhaps maybe possibly if whether wonder wondering imagine suppose supposing hypothetically would should hope hopes hoping
unless unclear unknown unconfirmed unverified proposed considering pending`)

// lexHearsay weakens an assertion to something that somebody is said to hold.
var lexHearsay = lexConceptSet(`claim allege allegedly supposedly rumour rumoured rumored viral meme insist`)

// lexIrregular leads forms to their base where endings do not.
var lexIrregular = func() map[string]string {
	m := map[string]string{}
	for _, row := range lexRows(`rise rose risen|fall fell fallen|grow grew grown|win won|lose lost|pay paid|spend spent|build built|make made|go went gone|take took taken
begin began begun|break broke broken|buy bought|sell sold|keep kept|leave left|meet met|send sent|sink sank sunk|steal stole stolen|swear swore sworn|teach taught
think thought|write wrote written|draw drew drawn|drive drove driven|fly flew flown|hide hid hidden|hold held|lead led|child children|man men|woman women
person people|foot feet|tooth teeth|mouse mice|give gave given|get gotten|find found|bring brought|catch caught|choose chose chosen|come came|eat ate eaten|fight fought
freeze froze frozen|forget forgot forgotten|hear heard|know knew known|lend lent|mean meant|run ran|see saw seen|shoot shot|shrink shrank shrunk|sleep slept|speak spoke spoken
stand stood|strike struck stricken|swim swam swum|tear tore torn|throw threw thrown|wear wore worn|deal dealt|feed fed|dig dug|lay laid|die died dying dies|lie lying
agree agreed|free freed freeing|guarantee guaranteed|decree decreed|analysis analyses|crisis crises|life lives|half halves|wife wives|leaf leaves|shelf shelves|knife knives|say said
death deaths dead|loss losses|growth|high height|strong strength|long length|overtake overtook|undergo underwent|withhold withheld|withdraw withdrew withdrawn withdrawal|arise arose
hit hits hitting|put puts|cut cuts cutting|shut shuts shutting|quit quits quitting|tie tied|uphold upheld|forbid forbade forbidden|overthrow overthrew|foresee foresaw|forgive forgave
fewer few|decide decision|expand expansion|divide division|explode explosion|prove proof proven|believe belief|approve approval|deny denial|arrive arrival|refuse refusal
remove removal|survive survival|renew renewal|safe safety|poor poverty|wealth wealthy|short shortage|deliver delivery|discover discovery|recover recovery|sick sickness
ill illness|weapon weaponry|hot heat|warm warmth|submit submission|admit admission|permit permission|omit omission|emit emission|conclude conclusion|extend extension
suspend suspension|respond response|defend defence defense|offend offence offense|receive receipt|thief theft thieves`) {
		words := strings.Fields(row)
		for _, w := range words {
			m[w] = words[0]
		}
	}
	return m
}()

// lexSynonyms leads words of one meaning to the first of their row. Each row is general English.
var lexSynonyms = func() map[string]string {
	m := map[string]string{}
	for _, row := range lexRows(`car automobile vehicle|doctor physician|kid child youngster|purchase buy|commence begin start launch|finish end|film movie|house home
pupil student|teacher instructor|lawyer attorney|police cop officer|job employment position|firm company business corporation|tax levy
assist help aid|demolish destroy wreck raze|repair fix mend|obtain acquire|sick ill|jail prison|gun firearm|illegal unlawful|wage salary|fee charge
huge enormous|hospital clinic|murder homicide|kill slay|unemployed jobless|airplane plane aircraft|vote ballot|medicine drug medication|garbage trash rubbish waste
pollute contaminate taint|fire blaze|money fund cash|shop store|spend expenditure|infant baby|petrol gasoline|elderly senior|resident inhabitant|couple pair
donate contribute|donation contribution|collapse crumble|injure hurt wound|discover uncover|vaccine vaccination|elect election|build construct erect
mandate require demand compulsory mandatory|inquiry investigation probe|complete finish|drinking potable|pipe pipeline|road street|fish fisheries|staff employee worker
warn caution|hire recruit|centre center|programme program|labour labor|grey gray|replace substitute|annual yearly|monthly month|annually annual|largest biggest large big`) {
		words := strings.Fields(row)
		base := lexBase(words[0])
		for _, w := range words {
			m[lexBase(w)] = base
		}
	}
	return m
}()

// lexRows splits a table into rows at bars and line breaks.
func lexRows(table string) []string {
	return strings.FieldsFunc(table, func(r rune) bool { return r == '|' || r == '\n' })
}

// lexBase is the stem of a word after its irregular form.
func lexBase(lower string) string {
	if base, ok := lexIrregular[lower]; ok {
		return lexStem(base)
	}
	return lexStem(lower)
}

// lexConcept is what two words of one meaning share.
func lexConcept(lower string) string {
	base := lexBase(lower)
	if s, ok := lexSynonyms[base]; ok {
		return s
	}
	return base
}

func lexConceptSet(words string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(words) {
		set[lexConcept(w)] = true
	}
	return set
}

// A lexPole is one end of a pair of opposites.
type lexPole struct {
	axis string // first word of the pair's row
	sign int    // 1 or -1
}

// lexPoleOf leads concepts to their end of an axis. Rows are "words / opposite words".
var lexPoleOf = func() map[string]lexPole {
	m := map[string]lexPole{}
	for _, row := range lexRows(`rise increase grow growth climb gain jump surge soar expand higher double triple quadruple boost swell raise more greater upward / fall decrease decline shrink plunge slump sink reduce reduction cut lower less few halve dwindle drop tumble downward cut
allow permit legal legalise lawful authorise / ban prohibit forbid outlaw illegal unlawful bar
approve accept adopt pass grant endorse succeed success successful / reject refuse deny veto disapprove dismiss fail failure unsuccessful
open reopen / close closed closure shut
win victory / lose defeat
begin begun / stop cease discontinue
support favour favor back / oppose opposition
hire recruit / fire dismissed sack
create creation build / destroy demolish
safe harmless / dangerous unsafe harmful hazardous risky
first earliest / last latest final
best / worst
largest biggest highest most / smallest lowest least
surplus / deficit
profit / loss
guilty convict convicted / innocent acquit acquitted
strengthen stronger / weaken weaker
include inclusion / exclude exclusion
keep retain preserve maintain / scrap abandon remove removal
show reveal disclose / hide
cause / prevent
import / export
rich wealthy / poor poverty
mandatory compulsory obligatory require mandate / optional voluntary
full / empty
arrest detain jail imprison / release
admit / conceal
early / late
hot / cold
warm warmer / cool cooler
high / low
long longer / short shorter
fast faster quick quicker / slow slower
improve better improvement / worsen worse deteriorate
majority / minority
alive survive survival / die dead death
clean pure / dirty pollute pollution contaminate contamination
buy purchase / sell sale
borrow / lend
cheap cheaper / expensive costly
present / absent
public / private
sick ill / healthy
wet / dry
above exceed / below
ahead / behind
agree / disagree
arrive / depart
extend / shorten
leave / stay remain
north northern / south southern
east eastern / west western
domestic / foreign
urban / rural
peace / war
permanent / temporary
old older / young younger new newer
intact undamaged / damaged broken`) {
		plus, minus, _ := strings.Cut(row, "/")
		words := strings.Fields(plus)
		if len(words) == 0 {
			continue
		}
		axis := words[0]
		add := func(words []string, sign int) {
			for _, w := range words {
				c := lexConcept(w)
				if _, taken := m[c]; !taken {
					m[c] = lexPole{axis: axis, sign: sign}
				}
			}
		}
		add(words, 1)
		add(strings.Fields(minus), -1)
	}
	return m
}()

// lexPrefixes make the opposite of a word.
var lexPrefixes = []string{"un", "in", "im", "il", "ir", "non", "dis", "mis"}

// lexCues are words about whether something is so: 1 says that it is, -1 that it is not.
var lexCues = func() map[string]int {
	m := map[string]int{}
	for _, w := range strings.Fields(`debunk debunked hoax myth untrue falsehood fabricated fabrication baseless unfounded disproved disproven disprove refute refuted misinformation
disinformation inaccurate incorrect false falsely fake bogus wrong wrongly misleading lied fiction fictitious nonsense`) {
		m[lexConcept(w)] = -1
	}
	for _, w := range strings.Fields(`true truth confirm confirmed correct correctly accurate accurately verify verified proven proof authentic genuine factual`) {
		m[lexConcept(w)] = 1
	}
	return m
}()

// lexSoft are cues whose denial leaves the matter open: not confirmed is not refuted.
var lexSoft = lexConceptSet(`confirm confirmed verify verified proven proof`)
