"""Whole messages that are one known phrase, in four languages: tables, nothing else.

They are matched against small letters without accents, single spaces and plain apostrophes.
"""

import re
from typing import Final

from gateway.hosts.builtin.intents import (
    ClockQuestion,
    Help,
    Intent,
    ListReminders,
    SmallTalk,
    Talk,
)
from gateway.hosts.builtin.patterns import any_of as _any
from gateway.hosts.builtin.patterns import maybe as _maybe

_REMINDERS = r"(?:reminders?|alarms?|timers?)\b"
_OF_MINE = _maybe("all ") + _maybe("of ") + _maybe("my ", "the ", "your ", "our ")
_OPEN = _maybe("current ", "open ", "active ", "pending ", "next ", "upcoming ", "other ")
_MINE = _OF_MINE + _OPEN + _REMINDERS
_AHEAD = _maybe(
    " planned", " set", " scheduled", " due", " on", " coming up", " to do", " for", " left",
    " today", " tomorrow", " tonight", " this week", " next", " next week", " now",
    " (?:mon|tues|wednes|thurs|fri|satur|sun)day", times=3,
)  # fmt: skip
_WHAT_IS = _any("what", "whats", "what's", "what is")
_LIST: Final = (
    _any("show", "list", "give", "tell", "get", "display", "check", "read", "see")
    + _maybe(" me")
    + f" {_MINE}"
    + _maybe(" list", " please"),
    _any("what", "which")
    + _maybe(" are", "'s", " is")
    + f" {_MINE}"
    + _maybe(
        " do i have", " have i got", " are there", " are set", " are open", " are active",
        " i have", " set", " now", " today", " tomorrow", " i set", times=2,
    ),
    _any("when is", "when's", "when are") + f" {_MINE}" + _maybe(" due", " set for", " coming"),
    _any("do i have", "have i got", "is there", "got", "have you got", "did i set")
    + _any(" anything", " something", " plans", " any plans", " anything else")
    + _AHEAD,
    "(?:is )?anything" + _any(" planned", " scheduled", " due", " set", " coming up", " on")
    + _AHEAD,
    _any("what do i have", "what have i got", "what have i") + _maybe(" to do", " on", " planned")
    + _AHEAD,
    _WHAT_IS + " on (?:my |the )?" + _any("list", "agenda", "schedule", "plate", "calendar")
    + _AHEAD,
    _WHAT_IS + " (?:on|planned|due|scheduled)" + _AHEAD,
    _any("do i have", "have i got", "are there", "is there", "got", "have you got")
    + _maybe(" any", " a", " some")
    + f" {_OPEN}{_REMINDERS}"
    + _maybe(" set", " left", " today", " open", " tomorrow", times=2),
    _any("how many ", "any ", "all ") + _OF_MINE + _OPEN + _REMINDERS
    + _maybe(" do i have", " are there", " are set", " set"),
    "(?:my )?reminders|(?:my )?reminder list|list(?: them| all)?",
    "what" + _maybe(" do i have", " have i got", " is", "'s")
    + _any(" coming up", " planned", " scheduled", " set", " due", " on my list", " next")
    + _maybe(" today", " for today", " now", " tomorrow", " this week"),
    "what " + _any("will you remind me", "did i ask you to remind me", "should i remember")
    + _maybe(" of", " about"),
    "what have i " + _any("set", "asked for", "planned"),
    "(?:and )?(?:show me )?what" + _any("'s", "s", " is", " comes") + " next",
    _maybe("zeige? ", "liste ", "nenne ") + _maybe("mir ") + _maybe("bitte ") + _maybe("alle ")
    + "(?:meine |die )?(?:erinnerungen|wecker|liste)" + _maybe(" auf", " an", " bitte"),
    _any("welche", "was fur", "wie viele") + " erinnerungen"
    + _any(" habe ich", " hab ich", " gibt es", " sind gesetzt", " sind offen", " stehen an")
    + _maybe(" noch", " heute", " morgen", " gesetzt"),
    "was sind meine erinnerungen|hab(?:e)? ich(?: noch| heute| morgen)? erinnerungen",
    "was (?:steht|liegt)" + _maybe(" heute", " morgen", " noch", " als nachstes") + " an|was kommt"
    + _maybe(" als nachstes", " noch"),
    _maybe("montre[zs]?[- ]moi ", "montre[rz]? ", "affiche[rz]? ", "liste[rz]? ", "donne-moi ")
    + _maybe("tous ") + "(?:mes|les) " + _any("rappels", "alarmes"),
    _any("quels", "combien de", "qu'est-ce que j'ai comme")
    + _maybe(" sont") + _maybe(" mes") + " rappels"
    + _maybe(" ai-je", " j'ai", " est-ce que j'ai", " sont prevus")
    + _maybe(" aujourd'hui", " demain"),
    _any("quels", "quelles") + " sont mes (?:rappels|alarmes)|ai-je des rappels",
    "qu'est-ce (?:que j'ai de|qui est) prevu(?: aujourd'hui| demain)?",
    _maybe("muestra(?:me)? ", "ensena(?:me)? ", "lista(?:r)? ", "dime ", "ver ") + _maybe("todos ")
    + "(?:mis|los) " + _any("recordatorios", "alarmas"),
    _any("que", "cuales", "cuantos") + " recordatorios (?:tengo|hay)(?: hoy| manana)?",
    "cuales son mis (?:recordatorios|alarmas)|tengo recordatorios",
    "que tengo (?:pendiente|previsto)(?: hoy| para hoy| manana| para manana)?",
)  # fmt: skip
_IS = _any("'s", " is", " was")
_CLOCK: Final = (
    "(?:do you (?:know|have) )?what(?: time| day| date)"
    + _maybe(" is it", " it is", " is today", " of the week is it", " do we have")
    + _maybe(" now", " today", " right now"),
    f"what{_IS} " + _maybe("the ") + _maybe("current ", "exact ", "local ")
    + _any("time", "date", "day") + _maybe(" and date", " and time", " and day")
    + _maybe(" now", " today", " right now", " please", " here"),
    "(?:current |local )?time(?: now)?|date|day|now|the time|today's date|clock",
    f"what{_IS} today(?:'s date)?|what " + _any("year", "month", "weekday") + " is it",
    "tell me (?:the )?(?:current )?" + _any("time", "date", "day"),
    "(?:do you have|have you got) the time|do you know the time",
    f"(?:what|which){_IS} (?:my|your|the) time ?zone",
    "(?:what|which) time ?zone " + _any("is this", "do you use", "are you in", "am i in"),
    "wie ?viel uhr(?: ist es| haben wir)?|wie spat ist es(?: jetzt)?|uhrzeit",
    "welche[rsn]? (?:tag|datum)(?: ist| haben wir)(?: heute)?",
    "quelle heure(?: est-il| il est)?|il est quelle heure|quel jour (?:sommes-nous|on est)",
    "que (?:hora|dia|fecha) es(?: hoy| ahora)?",
)  # fmt: skip
_HELP: Final = (
    "/?help(?: me)?|commands?|usage|menu|options|instructions|info",
    r"\?+|how does (?:this|it) work|how (?:do|can) i use (?:you|this|it)|how do you work",
    "what (?:can|do|could) (?:you|i|this)"
    + _any(" do", " say", " ask", " write", " understand")
    + _maybe(" here", " for me", " to you", " you"),
    "how (?:do|can) i " + _any("set", "make", "create", "add", "cancel", "list", "delete")
    + " (?:a |my )?" + _REMINDERS,
    "what " + _any("is this", "are the commands", "are your (?:features|functions|commands)"),
    "(?:bitte )?hilfe|was kannst du(?: alles)?(?: tun| machen)?|wie (?:geht|funktioniert) das",
    "aide(?:-moi)?|que (?:peux|sais)-tu faire|qu'est-ce que tu (?:peux|sais) faire",
    "comment ca (?:marche|fonctionne)|ayuda(?:me)?|que (?:puedes|sabes) hacer",
    "como funciona(?: esto)?",
)  # fmt: skip
_NAMED = _any(
    "chatgpt", "chat gpt", "gpt", "claude", "gemini", "siri", "alexa", "llm", "ai", "a bot", "bot",
    "robot", "human", "human being", "real", "person", "real person", "real human", "machine",
    "computer", "assistant", "language model", "artificial intelligence", "program", "model",
)  # fmt: skip
_TALK: Final = {
    Talk.GREETING: (
        _any("hello", "hi+", "hey+", "hiya", "howdy", "yo", "greetings", "morning", "evening",
             "good (?:morning|afternoon|evening|day)")
        + _maybe(" there", " bot", " you", " again", " everyone", " all"),
        "/?start|test|testing|ping",
        "are you " + _any("there", "here", "online", "awake", "alive", "up", "working"),
        _any("hallo+", "guten (?:tag|morgen|abend)", "servus", "moin", "gruss (?:dich|gott)",
             "bonjour", "bonsoir", "salut", "coucou", "hola+", "buen(?:os|as)? dias?", "buenas",
             "buenas (?:tardes|noches)")
        + _maybe(" zusammen", " du", " bot", " a tous", " a todos"),
    ),
    Talk.WELL_BEING: (
        _maybe("hi,? ", "hello,? ", "hey,? ")
        + _any("how (?:are|r) (?:you|u)(?: doing)?(?: today| now)?", "how's it going", "sup",
               "how is it going", "how do you do", "what's up", "(?:are )?you ok(?:ay)?"),
        _maybe("hallo,? ", "salut,? ", "bonjour,? ", "hola,? ")
        + _any("wie geht'?s(?: dir)?", "wie geht es (?:dir|ihnen)", "(?:comment )?ca va",
               "comment (?:vas-tu|allez-vous)", "que tal(?: estas)?", "como (?:estas|te va)"),
    ),
    Talk.THANKS: (
        _maybe("many ", "ok,? ", "okay,? ", "great,? ", "perfect,? ", "cool,? ", "nice,? ")
        + _any("thanks", "thank you", "thx", "ty", "cheers", "thank u", "much appreciated")
        + _maybe(" a lot", " so much", " very much", " you", " bot", " mate", " again", times=2),
        "(?:well done|good job|good bot|nice work|great job)",
        "(?:ok,? )?(?:vielen dank|(?:danke|dankeschon)(?: schon| sehr| dir)?)|besten dank",
        "(?:ok,? )?(?:merci(?: beaucoup| bien)?|(?:muchas |mil )?gracias)",
        "you(?:'re| are) (?:great|the best|awesome)",
    ),
    Talk.AFFECTION: (
        "i " + _maybe("really ", "do ") + _any("love", "like", "adore") + _any(" you", " u", " ya")
        + _maybe(" so much", " too", " bot", " a lot"),
        "(?:love you|ily|❤️|😘|🥰)",
    ),
    Talk.FAREWELL: (
        _any("bye", "goodbye", "good bye", "good night", "see you", "see ya", "ciao", "bye bye")
        + _maybe(" later", " soon", " tomorrow", " bot", " then"),
        "(?:exit|quit|log ?out|close|leave|q|:q|end)(?: now| please)?",
        "tschuss|tschau|auf wiedersehen|bis (?:bald|spater|morgen|dann)|gute nacht",
        "au revoir|a bientot|a plus(?: tard)?|a demain|bonne (?:nuit|journee|soiree)",
        "adios|hasta (?:luego|manana|pronto)|chao|nos vemos",
    ),
    Talk.IDENTITY: (
        "(?:and )?(?:who|what) (?:are|r) (?:you|u)(?: exactly| really)?|who is this",
        "who am i (?:talking|speaking|chatting) (?:to|with)",
        "(?:are|r) (?:you|u) " + _maybe("an ", "a ", "the ") + _NAMED + "(?: or .{1,60})?",
        "what(?:'s| is) your name|do you have a name|who (?:made|built|created|wrote) you",
        "(?:which|what) (?:language )?model (?:are you|do you use|is this)",
        "tell me about yourself|introduce yourself",
        "(?:wer|was) bist du(?: eigentlich)?|wie heisst du",
        "bist du (?:ein |eine )?(?:bot|mensch|ki|roboter|maschine|chatgpt)",
        "(?:qui|qu') ?es-tu|comment t'appelles-tu|tu es qui",
        "es-tu (?:un |une )?(?:robot|humain|ia|machine|bot|personne|chatgpt)",
        "eres (?:un |una )?(?:bot|robot|humano|ia|maquina|persona|chatgpt)",
        "quien eres|como te llamas",
    ),
    Talk.NOD: (
        "ok(?:ay)?|k|kk|fine|cool|great|nice|good|perfect|super|yes|yep|yeah|yup|no|nope|nah|sure",
        "right|alright|all right|got it|understood|i see|never ?mind|lol|ha(?:ha){1,9}|wow|hm+",
        "(?:👍|🙏|😊|👌|😀|🙂|🎉){1,9}",
        "ja|nein|doch|gut|alles klar|passt|oui|non|d'accord|ca marche|si|vale|de acuerdo|bueno",
    ),
}  # fmt: skip
_FIXED: Final[tuple[tuple[tuple[str, ...], Intent], ...]] = (
    (_LIST, ListReminders()),
    (_CLOCK, ClockQuestion()),
    (_HELP, Help()),
    *((patterns, SmallTalk(kind=kind)) for kind, patterns in _TALK.items()),
)
WHOLE: Final = tuple(
    (re.compile(pattern), intent) for patterns, intent in _FIXED for pattern in patterns
)
