"""Spanish words of time and their English: tables, nothing else."""

from typing import Final

from gateway.domain.when.language import ASKED, Language, listed, numbered

_NUMBERS: Final = (
    numbered("dos tres cuatro cinco seis siete ocho nueve diez once doce", start=2)
    | numbered("trece catorce quince dieciséis diecisiete dieciocho diecinueve veinte", start=13)
    | numbered("veintiuno veintidós veintitrés veinticuatro veinticinco veintiséis", start=21)
    | {"veintiún": 21, "veintiuna": 21, "veintisiete": 27, "veintiocho": 28, "veintinueve": 29}
    | {"treinta": 30, "cuarenta": 40, "cincuenta": 50, "sesenta": 60, "setenta": 70}
    | {"ochenta": 80, "noventa": 90}
)
_WEEKDAYS: Final = {
    "lunes": "monday",
    "martes": "tuesday",
    "miércoles": "wednesday",
    "jueves": "thursday",
    "viernes": "friday",
    "sábado": "saturday",
    "domingo": "sunday",
}
_PLURAL_DAYS: Final = _WEEKDAYS | {"sábados": "saturday", "domingos": "sunday"}
_MONTHS: Final = {
    "enero": "january",
    "febrero": "february",
    "marzo": "march",
    "abril": "april",
    "mayo": "may",
    "junio": "june",
    "julio": "july",
    "agosto": "august",
    "septiembre": "september",
    "octubre": "october",
    "noviembre": "november",
    "diciembre": "december",
}
_UNITS: Final = {
    "segundo": "second",
    "minuto": "minute",
    "hora": "hour",
    "día": "day",
    "semana": "week",
    "mes": "month",
    "año": "year",
}
_EVERY_MONTH: Final = "(?:de cada mes|de todos los meses|cada mes|todos los meses)"

SPANISH: Final = Language(
    numbers=_NUMBERS,
    tables={
        "at": {"a las": "at", "a la": "at", "sobre las": "at", "hacia las": "at", "@": "at"},
        "on": {"el": "on", "el día": "on"},
        "the": dict.fromkeys(("la", "las", "de las", "de la", "del"), "the"),
        "until": {"hasta": "until", "hasta el": "until", "hasta las": "until", "hasta la": "until"},
        "weekday": _WEEKDAYS,
        "days": _PLURAL_DAYS,
        # "mar" is the sea.
        "short": {
            "lun": "monday",
            "mié": "wednesday",
            "jue": "thursday",
            "vie": "friday",
            "sáb": "saturday",
            "dom": "sunday",
        },
        "other": _PLURAL_DAYS,
        "month": _MONTHS,
        "shortmonth": _MONTHS
        | {"setiembre": "september", "ene": "january", "feb": "february", "abr": "april"}
        | {"jun": "june", "jul": "july", "ago": "august", "sept": "september", "oct": "october"}
        | {"nov": "november", "dic": "december"},
        "monthnumber": {
            text: name
            for number, name in enumerate(_MONTHS.values(), start=1)
            for text in (str(number), f"{number:02}")
        },
        "nth": {
            "primer": "first",
            "primero": "first",
            "segundo": "second",
            "tercer": "third",
            "cuarto": "fourth",
            "quinto": "fifth",
            "último": "last",
            "primeros": "first",
            "segundos": "second",
            "terceros": "third",
            "últimos": "last",
        },
        "unit": {
            spelt: f"{english}s"
            for word, english in _UNITS.items()
            for spelt in (word, f"{word}s", f"{word}es")
        }
        | {"min": "minutes", "seg": "seconds"},
        "each": _UNITS,
        "part": {"mañana": "morning", "tarde": "afternoon", "noche": "night"},
        "parts": {
            "mañana": "morning",
            "mañanas": "morning",
            "tarde": "afternoon",
            "tardes": "afternoon",
            "noche": "night",
            "noches": "night",
        },
        "today": {"hoy": "today", "mañana": "tomorrow", "ayer": "yesterday"},
        "feast": {
            "navidad": "christmas",
            "nochebuena": "christmas eve",
            "nochevieja": "new year's eve",
            "año nuevo": "new year's day",
        },
        # Times that are asked about where no rule has them.
        "odd": dict.fromkeys(
            listed(
        "tardes noches mañanas madrugada madrugadas anteayer pascua reyes feriado festivos "
        "finde"
    )
            | {"fin de semana", "fines de semana", "semana santa"},
            ASKED,
        ),
    },
    shapes={
        "clock": (
            ("{zero} ?(?:h|horas)", "{zero}:00"),
            ("{hour}[:.h]{minute} ?(?:h|hs|horas)?", "{hour}:{minute}"),
            ("{hour}:{minute} ?(?:pm|p[.]m)", "{hour}:{minute} pm"),
            ("{hour}:{minute} ?(?:am|a[.]m)", "{hour}:{minute} am"),
            ("{hour} ?(?:pm|p[.]m)", "{hour} pm"),
            ("{hour} ?(?:am|a[.]m)", "{hour} am"),
            ("{hour} y media", "{hour}:30"),
            ("{hour} y cuarto", "{hour}:15"),
            ("{hour} menos cuarto", "{before}:45"),
            ("{hour} (?:y|con) {minute}(?: minutos)?", "{hour}:{minute}"),
            ("{hour} {minute}", "{hour}:{minute}"),
            ("{hour} menos {minute}(?: minutos)?", "{before}:{left}"),
            ("una y media", "1:30"),
            ("una y cuarto", "1:15"),
            ("una menos cuarto", "12:45"),
            ("una (?:y )?{minute}", "1:{minute}"),
            ("una menos {minute}", "12:{left}"),
            ("{hour}(?: ?h| ?hs| horas)?(?: en punto)?", "{hour} o'clock"),
            ("una(?: en punto)?", "1 o'clock"),
        ),
        "since": (("(?:las? )?{clock}", "{clock}"),),
        "till": (("(?:las? )?{clock}", "{clock}"),),
        "amount": (
            ("{n},{more} {unit}", "{n}.{more} {unit}"),
            ("{n} horas? y media", "{n}.5 hours"),
            ("(?:una )?hora y media", "1.5 hours"),
            ("un par de {unit}", "a couple of {unit}"),
            ("una hora y cuarto", "75 minutes"),
            ("{n} ?(?:h|horas?) (?:y )?{more} ?(?:min|minutos)", "{n} hours {more} minutes"),
            ("{n} ?h ?{more}", "{n} hours {more} minutes"),
            ("una hora (?:y )?{more} ?(?:min|minutos)", "1 hour {more} minutes"),
            ("{n} ?{unit}", "{n} {unit}"),
            ("{n} ?h", "{n} hours"),
            ("media hora", "half an hour"),
            ("(?:un )?cuarto de hora", "15 minutes"),
            ("3 cuartos de hora", "45 minutes"),
            ("una hora", "an hour"),
            ("una? {unit}", "a {unit}"),
        ),
        "date": (
            ("{day} de {shortmonth} (?:de |del )?{year}", "{day} {shortmonth} {year}"),
            ("{day} de {shortmonth}", "{day} {shortmonth}"),
            ("(?:1º|primero) de {shortmonth} (?:de |del )?{year}", "1 {shortmonth} {year}"),
            ("(?:1º|primero) de {shortmonth}", "1 {shortmonth}"),
            ("{day} {shortmonth}", "{day} {shortmonth}"),
        ),
        "numeric": (
            ("{day}[./]{monthnumber}[./]{year}", "{day} {monthnumber} {year}"),
            ("{day}[./]{monthnumber}[.]?", "{day} {monthnumber}"),
        ),
        "moment": (
            ("{weekday}", "{weekday}"),
            ("{date}", "{date}"),
            ("{numeric}", "{numeric}"),
            ("(?:a )?las? {clock}", "{clock}"),
            ("pasado mañana", "the day after tomorrow"),
            ("{today}", "{today}"),
            ("(?:el )?mediodía", "noon"),
            ("(?:la )?medianoche", "midnight"),
            ("(?:el )?(?:fin|final) de mes", "the end of the month"),
        ),
    },
    rules=(
        # days
        ("{today}", "{today}"),
        ("pasado mañana", "the day after tomorrow"),
        ("esta noche", "tonight"),
        ("esta {part}", "this {part}"),
        ("hoy al? mediodía", "today at noon"),
        ("mañana (?:por|en|a) la {part}", "tomorrow {part}"),
        ("mañana noche", "tomorrow night"),
        ("(?:la|una|toda la|de|por las) mañanas?", ASKED),
        ("noche", "night"),
        ("(?:por|en|durante) la {part}", "in the {part}"),
        ("por la noche", "at night"),
        ("(?:{on} )?{weekday}", "on {weekday}"),
        ("(?:{on} )?{weekday} (?:por|en|a) la {part}", "on {weekday} {part}"),
        ("este {weekday}", "this {weekday}"),
        ("(?:el )?próximo {weekday}", "next {weekday}"),
        ("(?:el )?{weekday} (?:próximo|que viene|siguiente)", "next {weekday}"),
        ("(?:el )?{weekday} de la (?:semana que viene|próxima semana)", "{weekday} next week"),
        ("(?:la )?(?:próxima semana|semana que viene)", "next week"),
        ("(?:el )?(?:próximo mes|mes que viene)", "next month"),
        ("(?:el )?{weekday} pasado", "last {weekday}"),
        ("(?:el )?pasado {weekday}", "last {weekday}"),
        ("(?:un|del|cualquier) {weekday}", ASKED),
        ("(?:el )?{nth} {weekday}", "{nth} {weekday}"),
        ("(?:{on} )?{short}(?= (?:; )?a las?\\b)", "on {short}"),
        ("(?:lun|lunes)-(?:vie|viernes)", "every weekday"),
        ("(?:{short}|{weekday}|mar)[-/][a-z]{3,9}", ASKED),
        ("{short} ; [a-z]{3} (?=a las?\\b|[0-9])", ASKED),
        ("(?:{on} )?{date}", "on {date}"),
        ("{on} {numeric}", "on {numeric}"),
        ("(?:{on} )?{weekday},? (?:día )?{day}", "on {weekday} the {day}th"),
        ("(?:{on} )?{weekday} {date}", "on {weekday} {date}"),
        ("{day}/{monthnumber}", "{day} {monthnumber}"),
        ("{day}/{monthnumber}/{year}", "{day} {monthnumber} {year}"),
        ("{on} {day}", "on the {day}th"),
        ("(?:en |para )?{feast}", "on {feast}"),
        ("{month}", "{month}"),
        ("(?:en|a finales de|a principios de|a mediados de) {month}", "in {month}"),
        ("(?:a |para )?(?:el )?(?:fin|final|finales|fines) (?:de|del|de este) mes",
         "the end of the month"),
        ("(?:el )?último día (?:del|de este) mes", "the last day of the month"),
        ("(?:este|el) (?:fin de semana|finde)", "this weekend"),
        # clock times
        ("a las 12 de la noche", "at midnight"),
        ("a las 12 del mediodía", "at noon"),
        ("{at} {clock}", "at {clock}"),
        ("(?:de|desde|entre) {since} (?:a|y|hasta) {till}", "from {since} to {till}"),
        ("(?:a más tardar|como muy tarde|poco antes|poco después|justo antes|justo después)",
         ASKED),
        ("cada", "every"),
        ("a (?:primera|última|la misma) hora", ASKED),
        ("al? (?:final|fin|principio) (?:del día|de la semana|de la tarde)", ASKED),
        ("{short} (?:; [a-z]{3} ){0,4}y [a-z]{3}", ASKED),
        ("(?:a|con) {weekday}", ASKED),
        ("(?:excepto|salvo|menos) (?:los |el )?{days}", "except {days}"),
        ("(?:excepto|salvo)", "except"),
        ("antes de las? {clock}", "before {clock}"),
        ("(?:después|a partir|pasadas) (?:de )?las? {clock}", "after {clock}"),
        ("(?:antes|después) de(?= esta)", "before"),
        ("{hour}[:h]{minute}", "{hour}:{minute}"),
        ("{the} {clock}(?! [a-z])", "the {clock}"),
        ("{the} {clock}(?= {moment})", "the {clock}"),
        ("{at} {clock} (?:de|por|en) la mañana", "at {clock} in the morning"),
        ("{at} {clock} (?:de|por|en) la tarde", "at {clock} pm"),
        ("{at} {clock} (?:de|por|en) la noche", "at {clock} at night"),
        ("{at} {clock} de la madrugada", "at {clock} am"),
        ("{at} {clock} del mediodía", "at {clock} in the afternoon"),
        ("(?:al|a) mediodía", "at noon"),
        ("a (?:la )?medianoche", "at midnight"),
        ("mediodía", "noon"),
        ("medianoche", "midnight"),
        # delays
        ("(?:en|dentro de) {amount}", "in {amount}"),
        ("(?:en|dentro de) {amount} y {n} {unit}", "in {amount} and {n} {unit}"),
        ("(?:en|dentro de) {amount} y medi[ao]", "in {amount} and a half"),
        ("{amount} y medi[ao]", "{amount} and a half"),
        ("(?:en|dentro de) un(?:os|as) (?:pocos |pocas |cuantos |cuantas )?{unit}",
         "in a few {unit}"),
        ("(?:en|dentro de) un (?:rato|momento)", "in a while"),
        ("{amount}", "{amount}"),
        ("{amount} (?:más tarde|después)", "{amount} later"),
        ("durante {amount}", "for {amount}"),
        ("después de {n} ?h", ASKED),
        ("después de {amount}", "after {amount}"),
        ("hace {amount}", "{amount} ago"),
        ("(?:ahora|ahora mismo|ya mismo)", "now"),
        # series
        ("(?:todos los días|cada día|a diario|diariamente)", "every day"),
        ("(?:todas las|cada) {parts}", "every {parts}"),
        ("(?:entre semana|cada día laborable|los días laborables|de lunes a viernes)",
         "every weekday"),
        ("(?:todos los|cada) días? (?:laborables?|hábil|hábiles)", "every weekday"),
        ("(?:todos los|cada|los) (?:fines de semana|fin de semana|findes)", "every weekend"),
        ("(?:todos los|cada|los) {days}", "every {days}"),
        ("(?:todos los|cada|los) {days} por la {part}", "every {days} {part}"),
        ("(?:todos los|cada|los) {days} y (?:los |cada )?{other}", "every {days} and {other}"),
        ("cada (?:otro|segundo|{n}) {days}", ASKED),
        ("cada {nth} {weekday}", "every {nth} {weekday}"),
        ("un {weekday} sí y otro no", "every other {weekday}"),
        ("un {weekday} de cada 2", "every other {weekday}"),
        ("un día sí y otro no", "every 2 days"),
        ("cada {n} {unit}", "every {n} {unit}"),
        ("cada media hora", "every 30 minutes"),
        ("cada cuarto de hora", "every 15 minutes"),
        ("cada {each}", "every {each}"),
        ("todas las horas", "every hour"),
        ("(?:todas las semanas|semanalmente)", "every week"),
        ("(?:todos los meses|mensualmente)", "every month"),
        ("(?:todos los años|anualmente)", "every year"),
        ("(?:cada mes|todos los meses),? (?:el )?(?:día )?{day}", "the {day}th of every month"),
        ("el (?:día )?{day} " + _EVERY_MONTH, "the {day}th of every month"),
        ("el (?:día )?(?:uno|primero) " + _EVERY_MONTH, "the 1st of every month"),
        ("el (?:día )?{day} y (?:el )?(?:día )?{n} " + _EVERY_MONTH,
         "the {day}th and {n}th of every month"),
        ("(?:el )?{nth} {weekday} " + _EVERY_MONTH, "{nth} {weekday} of every month"),
        ("(?:el )?{nth} {weekday} del mes", "{nth} {weekday} of the month"),
        ("(?:cada|todos los) {nth} {weekday} (?:del|de cada) mes",
         "{nth} {weekday} of every month"),
        ("(?:todos los|todas las) [a-z]+ {days}", ASKED),
        ("(?:a |al )?(?:fin|final|finales) de cada mes", "the last day of every month"),
        ("(?:el )?último día de cada mes", "the last day of every month"),
        ("{n} veces (?:al|a la|por) {each}", "{n} times a {each}"),
        ("una vez (?:al|a la|por) {each}", "once a {each}"),
        # ends and limits
        ("hasta (?:el )?{moment}", "until {moment}"),
        ("hasta las? {clock} de la (?:tarde)", "until {clock} pm"),
        ("(?:antes de|antes del|de aquí al?)(?= {moment})", "before"),
        ("(?:después de|después del)(?= {moment})", "after"),
        ("(?:desde|a partir de|a partir del|desde el)(?= {moment})", "from"),
        ("entre(?= (?:las |el )?{moment})", "between"),
        ("(?:después|antes) (?:del|de la|de) (?:trabajo|escuela|comer|cenar|comida|cena)",
         "after work"),
        # what is none
        ("(?:buenos días|buenas tardes|buenas noches|feliz año nuevo|feliz navidad)", "~"),
        ("para (?:el )?{weekday}", "for {weekday}"),
        ("para (?:el )?{date}", "for {date}"),
        ("para(?= {moment})", "for"),
        ("[ye]", "and"),
        ("[ou]", "or"),
        ("(?:capítulo|página|habitación|número|línea|andén|sala|piso)", "chapter"),
        ("(?:de|que|para|con|porque)", "that"),
        ("{odd}", ASKED),
    ),
    after=(
        ("(?:de|por|en|a) la {part}", "in the {part}"),
        ("(?:de|por|en|a) la noche", "at night"),
        ("{hour}[:h]{minute}", "at {hour}:{minute}"),
        ("{hour} ?(?:h|horas)(?! de\\b)", "at {hour} o'clock"),
        ("y (?:el |los )?{weekday}", "and {weekday}"),
        ("(?:muy |más |bien )?(?:temprano|tarde|pronto)", ASKED),
        ("hora (?:de|del|local)[ a-z]*", ASKED),
    ),
    shown_by=listed(
        "el la las los en de del al que para con por y o un una unos cada todos todas mi mis "
        "su hoy ahora semanalmente mensualmente a llamar comprar tomar hacer ir pagar sacar "
        "enviar avísame recuérdame me es dentro hasta desde pasado medianoche mediodía "
        "mediodia media fin próximo proximo esta este"
    ),
    own=listed(
        "h min sec a me once mar no son sin he mi minute sept y o e u come sale red ten pie "
        "dos sol sun"
    ),
    ordinary=listed("manzana manzanas salado mares"),
    counted=r"\w{4,}s|kg|mg|ml|%|€",
)  # fmt: skip
