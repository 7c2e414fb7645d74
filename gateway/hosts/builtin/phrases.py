"""The phrases of the offline grammar for new reminders: tables of patterns, nothing else.

`UNFINISHED` is matched against small letters without accents and single spaces, the others
against the message as typed.
"""

import re
from typing import Final

from gateway.hosts.builtin.intents import Feature
from gateway.hosts.builtin.patterns import any_of as _any
from gateway.hosts.builtin.patterns import maybe as _maybe
from gateway.hosts.builtin.patterns import typed as _typed

# Longer messages are not small talk, and a reminder's head is looked for in their beginning only.
BARE_LENGTH: Final = 300


_LET = _any("can", "could", "would", "will") + " you "
POLITE_BEFORE: Final = _typed(
    "^"
    + _maybe(
        "please ", "pls ", "okay ", "ok ", "so ", "and ", _LET, "bitte ", "kannst du ",
        "s['’]il te pla[iî]t,? ", "peux-tu ", "por favor,? ", "puedes ", times=4,
    )
)  # fmt: skip
_PLEASE = _any("please", "pls", "bitte", "stp", "svp", "s['’]il (?:te|vous) pla[iî]t", "por favor")
_THANKS = _any("thanks", "thank you", "thx", "ok", "danke", "merci", "gracias")
POLITE_AFTER: Final = _typed(rf"[\s,]{{0,5}}\b{_any(_PLEASE, _THANKS)}[\s.!?]{{0,9}}$")
# Behind a text that may itself end in "thanks": there, only after a comma or full stop.
COURTESY_AFTER: Final = _typed(
    rf"[\s,]{{0,5}}\b{_PLEASE}[\s.!?]{{0,9}}$",
    rf"\s{{0,5}}[,.!;]\s{{0,5}}{_THANKS}[\s.!?]{{0,9}}$",
)
# Words around "remind me" that say nothing.
POLITE: Final = _typed(
    r"(?<![^\s,])"
    + _any(
        "please|pls|hey|hi|hello|ok|okay|so|and|also|then|but|just|kindly|bot|yes|oh|well|thanks",
        "can|could|would|will|you|u|yo|pls|i|want|need|like|i['’]d|to|that|if",
        r"@\w+",
    )
    + r"(?![^\s,.!:])[.!:]?"
)
_HELLO = _any(
    "hello", "hi", "hey", "good morning", "good afternoon", "good evening", "hallo", "guten tag",
    "guten morgen", "guten abend", "moin", "servus", "bonjour", "bonsoir", "salut", "hola",
    "buenos d[ií]as", "buenas tardes", "buenas noches", "buenas",
)  # fmt: skip
GREETING: Final = _typed(
    r"^@\w+[\s,:]+",
    "^"
    + _any(_HELLO, "thanks", "thank you", "ok", "okay")
    + _maybe(" there", " bot")
    + r"\s*(?:[,.!]+|\n)",
    "^" + _HELLO + _maybe(" there", " bot") + r"\s+(?=(?:can|could|please|remind|what|set|show|"
    r"kannst|k[oö]nntest|bitte|erinner|weck|peux|pouvez|rappell?e|puedes|recu[eé]rda)\w{0,6}\b)",
)

_SPAN = r"[\w.]{1,12}[\s-](?:second|minute|hour|min|sec)s?"
_NOT = r"do(?:n['’]?|\s+no)t\s+"
_RHYTHM = _any(
    "daily", "weekly", "monthly", "yearly", "annual", "hourly", "fortnightly", "weekday", "weekend",
    "nightly", r"every\s?day", "recurring", "repeating", "repeated", "regular", "periodic",
)  # fmt: skip
HEAD: Final = _typed(
    r"\bremind\s+(?:me|us|myself)\b",
    r"\b(?:set|create|add|make|schedule|put|start|give|need|want|get|i['’]d\s+like)\s+"
    r"(?:me\s+|us\s+|up\s+)?(?:a\s+|an\s+|another\s+|one\s+|the\s+|my\s+)?(?:new\s+|quick\s+)?"
    rf"(?:{_RHYTHM}\s+)?(?:{_SPAN}[\s-])?(?:reminder|alarm|timer|alert|notification)\b",
    r"\bto\s+be\s+reminded\b",
    rf"\b{_NOT}(?:let|make)\s+(?:me|us)\s+forget\b",
    r"\bwake\s+(?:me|us)(?:\s+up)?\b",
    r"\b(?:ping|notify|alert|nudge|buzz|poke)\s+(?:me|us)\b",
    rf"^(?:new\s+)?(?:{_RHYTHM}\s+)?(?:reminder|(?:timer|alarm)(?!\s+(?:auf|f[uü]r|von)\b))\b|^remember\s+to\b|"
    rf"^{_NOT}forget\s+to\b",
)
RHYTHM: Final = _typed(rf"\b{_RHYTHM}(?=\s+(?:reminder|alarm|timer|alert|notification)$)")
# Says that it repeats, and not in which rhythm.
REPEATING: Final = _typed(r"(?:recurring|repeating|repeated|regular|periodic)")
WAKE: Final = _typed(r"wake\s+(?:me|us)(?:\s+up)?")
TIMER: Final = _typed(rf"(?:({_SPAN})[\s-])?timer$")
LENGTH: Final = _typed(r"^\s*(?:(?:for|of)\s+)?(?=\w+\s*[a-z])")
FOR_CLOCK: Final = _typed(r"^\s*for\s+(?=\d)")
AGAIN: Final = _typed(r"\bremind\s+(?:me|us)\b")
# Words on how often, which no text of a reminder needs unless it is in quotes.
OFTEN: Final = _typed(
    r"\b(?:(?:again|over)\s+and\s+(?:again|over)|twice|thrice|repeatedly|regularly|constantly|"
    r"periodically|continually|all\s+the\s+time|every\s+now\s+and\s+then|on\s+a\s+regular\s+basis|"
    r"from\s+time\s+to\s+time|each\s+time|every\s+time|from\s+now\s+on|"
    r"(?:two|three|four|five|\d{1,3}|several|many|multiple|a\s+few)\s+times)\b",
    r"\b(?:(?:zwei|drei|vier|fünf|mehr|viel|\d{1,3}\s?)mal|mehrmals|immer\s+wieder|regelm[äa]ß?s?s?ig|"
    r"st[äa]ndig|jedes\s+mal|ab\s+und\s+zu|von\s+zeit\s+zu\s+zeit|ab\s+jetzt)\b",
    r"\b(?:(?:deux|trois|quatre|plusieurs|\d{1,3})\s+fois|r[ée]guli[èe]rement|sans\s+cesse|"
    r"[àa]\s+chaque\s+fois|de\s+temps\s+en\s+temps|souvent)\b",
    r"\b(?:(?:dos|tres|cuatro|varias|muchas|\d{1,3})\s+veces|regularmente|una\s+y\s+otra\s+vez|"
    r"cada\s+vez|de\s+vez\s+en\s+cuando|a\s+menudo)\b",
)
# Right behind or before the request, as in "always remind me at 8".
ALWAYS: Final = _typed(r"^\W{0,3}(?:always|keep|immer|toujours|siempre)\b")
OF_THAT: Final = _typed(
    r"^\W{0,3}(?:(?:of|about)\s+(?:that|this|it)|(?:bitte\s+)?dar?an)\b",
    r"\b(?:(?:of|about)\s+(?:that|this|it)|dar?an)\W{0,3}$",
)
# What is no text by itself: the reminder that was sent last is meant.
AGAIN_ONLY: Final = _typed(
    r"^(?:(?:of|about)\s+)?(?:it|that|this)(?:\s+one)?(?:\s+(?:once\s+)?(?:again|more))?$",
    r"^(?:once\s+)?again$|^(?:once|one)\s+more(?:\s+time)?$",
    r"^(?:(?:noch\s?mals?|noch\s+einmal|wieder|daran|dran|es|das)[\s,]*)+$",
    r"^(?:encore(?:\s+une\s+fois)?|(?:de|à)\s+nouveau|ça|cela)$",
    r"^(?:otra\s+vez|de\s+nuevo|esto|eso|nuevamente)$",
)
# In front of "remind me" without a comma between: something told of, not asked for.
TOLD: Final = _typed(
    r"(?:i|you|u|he|she|we|they|it|if|ich|du|er|wir|je|tu|il|elle|yo|t[uú]|[eé]l|ella)\b|i['’]"
)
# A request is refused in front of it or behind it.
REFUSED: Final = _typed(
    r"\b(?:don['’]?t|do\s+no?t|didn['’]?t|did\s+not|doesn['’]?t|never|not|no|without|won['’]?t|"
    r"nicht|nie|niemals|kein(?:en?|e[rm])?|ne|pas|jamais|nunca|jam[aá]s|ya\s+no)"
    r"(?:\s+(?:want|need|have|like|quiero|necesito|veux|will|möchte|brauche|you|me|to|un[ae]?|que)){0,4}$"
)
REFUSED_AFTER: Final = _typed(
    r"^(?:nicht|nie|pas|no)(?:\s+(?:mehr|plus|m[aá]s))?$|^nicht\s+(?:mehr|an|ans|daran)\b"
)
# What parts the words in front from the request.
CLOSED: Final = _typed(r"(?:[,.;:!?\n—–-]|\b(?:so|and|please|pls|then))\s*$")
ASKING: Final = _typed(r"\b(?:can|could|will|would)\s+(?:you|u|ya|i)\b")
FOR_ME: Final = _typed(r"^\s+for\s+(?:me|us|myself)\b(?!\s+and\b)")
LINK: Final = _typed(r"\s+(?:so|and|then)[\s,]*$")
BARE_NUMBER: Final = _typed(r"#?(\d{1,2})[.!]?")
ANEW: Final = _typed(r"^[\s,:]{0,5}(?:once\s+)?again\b(?!\s+and\b)[\s,:]{0,5}")
EARLIER: Final = _typed(
    r"\b(?:\d{1,4}\s?(?:m|h)|min(?:ute)?s?|h(?:ou)?rs?|days?|weeks?)\s+"
    r"(?:earlier|early|before(?:hand)?|prior|in\s+advance|ahead)\b",
    r"\b(?:minuten?|stunden?|tage?|wochen?)\s+(?:vorher|davor|zuvor|früher|eher)\b",
    r"\b(?:minutes?|heures?|jours?|semaines?)\s+(?:avant|plus\s+tôt|en\s+avance)\b",
    r"\b(?:minutos?|horas?|d[ií]as?|semanas?)\s+(?:antes|de\s+antelaci[oó]n)\b",
)
QUOTED: Final = _typed(r'"[^"\n]+"', "“[^“”\n]+”")
_SOON = _any(
    "soon", r"later(?:\s+on)?", "asap", "sometime", "someday", "eventually", r"at\s+some\s+point"
)
SOON: Final = _typed(
    rf"^{_SOON}(?![\w-])[\s,]{{0,5}}{_SOON}?[\s,]{{0,5}}(?:to\s|that\s|about\s)?",
    rf"(?<=\s){_SOON}[\s.!]{{0,5}}$",
)
# "when I get home (to ...)", at either end of the text.
CIRCUMSTANCE: Final = _typed(
    r"^(?:when|whenever|once|if|after|before|at|around|by)\b.{1,80}?\bto\s+(?=\S)",
    r"(?<=\s)(?:when|whenever|once|as\s+soon\s+as|after|before)\s+"
    r"(?:i|we|he|she|it|they|the|you|my)\b.{0,100}$",
)
_POLITELY = (
    r"^\W{0,3}(?:(?:please|pls|hi|hey|hello|ok|okay|and|can\s+you|could\s+you|will\s+you)\b"
    r"[\s,]{1,3}){0,4}"
)
# What may be a slip for "remind me", "a reminder" or "remind" at the start.
LIKE_REMIND_ME: Final = _typed(rf"({_POLITELY})([a-z]{{4,9}}?)\s{{0,3}}(me|us|myself)\b")
LIKE_REMINDER: Final = _typed(
    rf"({_POLITELY}(?:(?:set|create|add|make)\s+(?:me\s+)?(?:an?\s+)?)?)"
    r"([a-z]{5,10})(?=\s*:|\s+(?:to|for|at|in|on|tomorrow)\b)"
)
BARE_REMIND: Final = _typed(
    rf"({_POLITELY})remind\s+(?=(?:to|about|that|at|in|on|today|tomorrow|tonight)\b|\d)"
)
LINE_LEAD: Final = _typed(
    r"\bremind|^\W{0,3}(?:set|create|add|wake|ping)\b",
    r"\berinner|\brappell?e|\brecu[eé]rd|^\W{0,3}(?:weck|stell|mets|r[eé]veille|av[ií]sa|pon|despi[eé]rta)",
)
# What is said to a chat bot, or told: not the text of a reminder that was sent alone.
NO_TASK: Final = _typed(
    r"(?:who|what|whats|which|when|where|why|how|do|does|did|is|are|am|was|were|can|could|will|"
    r"would|should|may|shall|has|have|tell|say|sing|show|give|explain|translate|calculate|"
    r"i|he|she|we|it|they|you|there|this|that|my|your|no|yes|not|let|let['’]s|hello|hi|hey)\b|"
    r"(?:lol|rofl|lmao|omg|wtf|wow|oh|ah|haha\w*|hehe\w*|hm+|huh|sorry|ok|okay|well|yeah|nah|hallo|"
    r"salut|hola|ich|du|er|wir|ist|was|wer|wie|wo|warum|wann|je|tu|il|elle|nous|c['’]est|qui|que|"
    r"quoi|pourquoi|comment|yo|ella|nosotros|qu[eé]|qui[eé]n|c[oó]mo|es|por)\b|"
    r"\W|\d|(?:i|he|she|we|it|they|you|that|there|what|who)['’]",
    r".*\b(?:what|who|why|how|lol|lmao|wtf)\W*$",
)
OTHER_PERSON: Final = _typed(
    r"^\W{0,3}(?:please\s+|can you\s+|could you\s+)?remind\s+"
    r"((?:my\s+|the\s+|our\s+)?[\w'’-]{1,30})\s+(?=(?:to|that|about|at|in|on|tomorrow|tonight|every)\b)"
)
LIST_PREFIX: Final = _typed(
    r"^\W{0,3}(?:what|which|did|have|why|how|whom?|when\s+(?:will|do|did|are|is|should|would))\b"
)
# "and in an hour to call mum": the rest of an earlier request.
ELLIPSIS: Final = _typed(r"^(?:and|also|then|plus)\b[\s,:]{0,5}(?:also\b\s?)?")
# Before the text of a reminder: 'a reminder named "call Bob"'.
NAMED: Final = _typed(
    r"^(?:named|called|titled|saying|which says|that says|for|with the (?:text|name|title))\b"
    r"[\s:]*",
    # What is said of the request: "once to drink", "please to call mum".
    r"^(?:(?:please|pls|ok|okay|kindly|if\s+(?:possible|you\s+can)|just|only|once|any\s?time|"
    r"exactly|precisely|promptly|on\s+the\s+dot)[\s,]+){1,3}(?:to|that|about)\s+",
    r"^(?:when|once|as\s+soon\s+as)\s+it(?:['’]s|\s+is)\s+to\s+",
    r"\s(?:when|once|as\s+soon\s+as)\s+it(?:['’]s|\s+is)$",
)
NO_EXAMPLE: Final = _typed(
    r"(?:at|on|in|when|after|before|around|about|by|asap|if|once|later)\b|\W|\d"
)
# Something told, not something to do.
STATEMENT: Final = _typed(r"(?:i|he|she|we|it|they|you|there|this|that|my|the|is|are)\b|i['’]")

UNFINISHED: Final[tuple[tuple["re.Pattern[str]", Feature], ...]] = (
    (
        re.compile(
            r"(?:change|set|switch|use|update)\b.{0,20}\btime ?zone|my time ?zone is\b|"
            r"(?:zeitzone|meine zeitzone|fuseau horaire|zona horaria|huso horario)\b"
        ),
        Feature.TIME_ZONE,
    ),
    (
        re.compile(
            r"(?:remember|note|memori[sz]e|save|store|write down|(?:take|make) a note|keep in mind)"
            r"\b(?! to\b)|forget (?:that|about|my|what|everything)\b|"
            r"(?:what|do you|can you|did you)\b.{0,20}\b(?:remember|know about)\b|"
            r"what (?:did|have) i (?:say|said|told?|tell)\b|what do you know\b"
        ),
        Feature.NOTES,
    ),
)
