package annotate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"assay/corpus"
	"assay/llm"
)

// CategoryVersion is that of Categorise; raise it when the same replies give other categories.
const CategoryVersion = 1

// Subject is what the category prompt and its builtin answer read.
type Subject struct {
	Claim string `json:"claim"`
	Title string `json:"title,omitzero"`
	Tags  string `json:"tags,omitzero"` // joined by commas
}

// Categorised is what a model says a claim is about.
type Categorised struct {
	ClaimID    string          `json:"claim_id"`
	Category   corpus.Category `json:"category,omitzero"` // "" where the model finds none that fits
	Confidence float64         `json:"confidence,omitzero"`
	Call       string          `json:"call"`
	Calls      []string        `json:"calls,omitzero"`
}

type categoryReply struct {
	Confidence float64 `json:"confidence"`
	Category   string  `json:"category"`
}

const unclear = "unclear"

// CategoryTemplate asks what a claim is about.
var CategoryTemplate = llm.MustLoadTemplate(prompts, llm.Template{
	Name:    "category",
	Version: 1,
	Schema: json.RawMessage(`{"type":"object","properties":{"confidence":{"type":"number"},` +
		`"category":{"type":"string","enum":["politics","celebrity","science","medical","history","commonsense","unclear"]}},` +
		`"required":["confidence","category"],"additionalProperties":false}`),
	Labels: llm.Labels{Field: "category", Aliases: map[string]string{
		"entertainment": "celebrity", "gossip": "celebrity", "health": "medical", "medicine": "medical", "common_sense": "commonsense", "everyday_life": "commonsense",
		"political": "politics", "historical": "history", "scientific": "science", "none": unclear, "other": unclear,
	}},
	Builtin:        builtinCategory,
	BuiltinVersion: 1,
})

func builtinCategory(vars any) (json.RawMessage, error) {
	s, ok := vars.(Subject)
	if !ok {
		return nil, fmt.Errorf("read subject: variables are %T", vars)
	}
	c, confidence := readCategory(s)
	if c == "" {
		c = unclear
	}
	return json.Marshal(categoryReply{Confidence: confidence, Category: string(c)})
}

// Categorise asks what a claim is about.
func Categorise(ctx context.Context, m Model, s ExtractSettings, c corpus.Claim) (Categorised, error) {
	reply, err := m.Complete(ctx, s.request("category", CategoryTemplate, Subject{Claim: corpus.Space(c.Text), Title: corpus.Space(c.Title), Tags: strings.Join(c.Tags, ", ")}))
	if err != nil {
		return Categorised{}, fmt.Errorf("categorise %s: %w", c.ID, err)
	}
	out := Categorised{ClaimID: c.ID, Call: reply.Call, Calls: slices.Clone(reply.Calls)}
	if reply.Outcome != llm.OutcomeAnswered {
		return Categorised{}, &CategoryFailure{ClaimID: c.ID, Reason: failed("", reply, nil).Reason, Call: reply.Call}
	}
	var answer categoryReply
	if err := json.Unmarshal(reply.JSON, &answer); err != nil {
		return Categorised{}, fmt.Errorf("categorise %s: %w", c.ID, err) // unreachable: the reply fits the schema
	}
	if answer.Category != unclear {
		out.Category, out.Confidence = corpus.Category(answer.Category), min(max(answer.Confidence, 0), 1)
	}
	return out, nil
}

// CategoryFailure says that the model gave no category, which is no reason to make one up.
type CategoryFailure struct {
	ClaimID, Reason, Call string
}

func (e *CategoryFailure) Error() string {
	return fmt.Sprintf("categorise %s: %s (call %s)", e.ClaimID, e.Reason, e.Call)
}

// FailureClass is permanent: the reply is stored, so asking again would give it again.
func (e *CategoryFailure) FailureClass() string { return "permanent" }

// FailureReason is the reason slug.
func (e *CategoryFailure) FailureReason() string { return e.Reason }

// categoryWords are what the builtin model knows categories by: words that stand in claims of one of
// them more than in those of others, in their base form. A word with a star weighs double.
var categoryWords = map[corpus.Category]map[string]int{
	corpus.Politics: weights(`president* senator* congress* senate* congressman* governor* election* elect vote* voter* ballot* democrat* democratic* republican* gop* party
minister* government* parliament* mayor tax* law bill legislation* legislature* immigrant* immigration* migrant* border* refugee* deport* budget* deficit debt campaign*
candidate* impeach* court supreme* judge abortion* gun police crime prison military troops army war sanction* treaty* embassy* ambassador* diplomatic* nato* citizenship*
nationality* veto* policy administration constitution* constitutional* federal socialist* welfare unemployment wage job economy oil pipeline protest white-house* capitol*
lockdown mandate ban state visa green terrorism terrorist inflation election-fraud`),
	corpus.Celebrity: weights(`actor* actress* singer* band* album* song* film* movie* tour concert* hollywood* star starred celebrity* rapper* tv television show* award* oscar*
grammy* fashion dress wedding married divorce* boyfriend girlfriend player* football* basketball* nba* nfl* team athlete* coach* royal prince princess* comedian* model
netflix* series premiere* fans photographer pictures shoot instagram t-shirt`),
	corpus.Science: weights(`climate* warming* carbon* emission* scientist* science* scientific* planet* earth* moon* mars* space* nasa* telescope* asteroid* species* animal*
earthquake* magnitude* temperature* weather* storm hurricane* flood rainfall* ocean* sea ice glacier* energy solar* wind battery* lithium* cobalt* nuclear* atom* physics*
dinosaur* evolution* fossil* water river volcano* technology robot* 5g radio research galaxy* kangaroo* whale* tree forest rainbow*`),
	corpus.Medical: weights(`vaccine* vaccination* vaccinate* virus* coronavirus* covid* covid-19* flu* influenza* disease* cancer* doctor* hospital* patient* drug* medicine*
medical* treatment* cure* infection* infect* symptom* health* pandemic* epidemic* outbreak* quarantine* mask* masks* dose* surgery* diabetes* insulin* hydroxychloroquine*
chloroquine* vitamin* immune* immunity* cdc* fda* mortality* death die birth pregnancy* pregnant* autism* ebola* measles* cdc nurse* clinic* test testing sperm* sleep
asthma* ozone nutrition* diet* recall salmonella* listeria* allergen* undeclared* homeopathy* survival hospice`),
	corpus.History: weights(`century* centuries* ancient* historical* history* empire* king queen emperor* colony* colonial* founding* founded* declaration* independence* slavery*
slave* civil-war* wwii* hitler* nazi* holocaust* reagan* lincoln* washington eisenhower* roosevelt* kennedy* sultan* dynasty* medieval* revolution* soviet* ussr* world-war*
1918* pyramid* tomb* archaeologist* invented adams jefferson* quote`),
	corpus.Commonsense: weights(`recall* product* consumer* toaster* range* food* eat* milk* recipe* water price cost shop* store* phone* cell* bluetooth* car* gas* pump* credit*
card* bank scam* fraud* fee* refund* battery kitchen* home household* cleaning* bottle* bottled* plastic* toilet* bread* coffee* sugar* egg* fruit* dog* cat* child toy* crib*
password* bill email mail package coupon* lottery* giveaway* job-offer* microwave* hazard* alexa* amazon* facebook pepsi* coca* shipping* skimmer* firm* wifi* road* traffic*`),
}

func weights(words string) map[string]int {
	out := map[string]int{}
	for _, w := range strings.Fields(words) {
		base, heavy := strings.CutSuffix(w, "*")
		out[base] = 1
		if heavy {
			out[base] = 2
		}
	}
	return out
}

// readCategory adds up the words of a claim, and at half their weight those of title and tags.
func readCategory(s Subject) (corpus.Category, float64) {
	scores, total := map[corpus.Category]float64{}, 0.0
	add := func(text string, weight float64) {
		for _, sentence := range llm.Sentences(text) {
			old := false
			for _, w := range spoken(sentence) {
				for _, c := range corpus.Categories {
					if n := categoryWords[c][w.Lower] + categoryWords[c][singular(w.Lower)]*boolInt(singular(w.Lower) != w.Lower); n > 0 {
						scores[c] += weight * float64(n)
						total += weight * float64(n)
					}
				}
				old = old || pastYear(w.Lower)
			}
			if old {
				scores[corpus.History] += 2 * weight
				total += 2 * weight
			}
		}
	}
	add(s.Claim, 1)
	add(s.Title, 0.5)
	add(s.Tags, 0.5)
	best := corpus.Category("")
	for _, c := range corpus.Categories {
		if scores[c] > 0 && (best == "" || scores[c] > scores[best]) {
			best = c
		}
	}
	if best == "" {
		return "", 0
	}
	return best, float64(int(100*scores[best]/total)) / 100
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// singular takes the ending of a plural off.
func singular(w string) string {
	switch {
	case strings.HasSuffix(w, "ies") && len(w) > 4:
		return w[:len(w)-3] + "y"
	case strings.HasSuffix(w, "ss") || len(w) < 4:
		return w
	}
	return strings.TrimSuffix(w, "s")
}

// pastYear reports whether a number is a year of which people speak as of history.
func pastYear(w string) bool {
	return len(w) == 4 && w >= "1000" && w < "1980"
}
