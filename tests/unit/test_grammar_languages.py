"""What the offline host makes of German, French and Spanish."""

from datetime import datetime
from unicodedata import normalize
from zoneinfo import ZoneInfo

import pytest

from gateway.domain.schedule_forms import describe
from gateway.hosts.builtin.grammar import understand
from gateway.hosts.builtin.intents import (
    Act,
    AskBack,
    ClockQuestion,
    Deed,
    Done,
    Feature,
    Help,
    Intent,
    Latest,
    ListReminders,
    Move,
    NotYet,
    Numbers,
    Remind,
    Rename,
    SmallTalk,
    Snooze,
    Talk,
    Target,
    WhichOne,
)

BERLIN = ZoneInfo("Europe/Berlin")
MONDAY = datetime(2026, 11, 30, 10, 0, tzinfo=BERLIN)
TWO = Numbers(numbers=(2,))


def read(text: str) -> Intent:
    return understand(text, now=MONDAY, zone=BERLIN)


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize(
    ("message", "text", "first", "rhythm"),
    [
        ("erinnere mich morgen um 9 daran, Mama anzurufen", "Mama anzurufen", "12-01 09:00", ""),
        ("Erinner mich bitte morgen um 9 daran, Mama anzurufen", "Mama anzurufen", "12-01 09:00",
         ""),
        ("erinnere mich daran, morgen um 9 Mama anzurufen", "Mama anzurufen", "12-01 09:00", ""),
        ("Erinnern Sie mich um 17 Uhr an den Zahnarzt", "den Zahnarzt", "11-30 17:00", ""),
        ("errinnere mich um 17 Uhr an den Zahnarzt", "den Zahnarzt", "11-30 17:00", ""),
        ("erinnere mich um 17 Uhr an den Zahnarzt", "den Zahnarzt", "11-30 17:00", ""),
        ("erinnere mich in 10 Minuten an den Ofen", "den Ofen", "11-30 10:10", ""),
        ("erinnere mich morgen um 9, dass ich Mama anrufen muss", "ich Mama anrufen muss",
         "12-01 09:00", ""),
        ("kannst du mich morgen um 9 daran erinnern, Mama anzurufen?", "Mama anzurufen",
         "12-01 09:00", ""),
        ("Könntest du mich bitte in 20 Minuten an den Kuchen erinnern?", "den Kuchen",
         "11-30 10:20", ""),
        ("ich möchte morgen um 9 daran erinnert werden, Mama anzurufen", "Mama anzurufen",
         "12-01 09:00", ""),
        ("vergiss nicht, mich morgen um 9 an die Miete zu erinnern", "die Miete", "12-01 09:00",
         ""),
        ("erinnere mich in einer halben Stunde zu duschen", "duschen", "11-30 10:30", ""),
        ("hallo, erinnere mich um 17 Uhr zu gehen", "gehen", "11-30 17:00", ""),
        ("erinnere mich jeden Tag um 8 daran, die Pillen zu nehmen", "die Pillen zu nehmen",
         "12-01 08:00", "daily"),
        ("erinnere mich werktags um 18:30 ans Gehen", "Gehen", "11-30 18:30", "weekdays"),
        ("erinnere mich jeden zweiten Dienstag um 9, die Pflanzen zu gießen",
         "die Pflanzen zu gießen", "12-01 09:00", "every 2 weeks"),
        ("erinnere mich alle 2 Stunden ans Trinken", "Trinken", "11-30 12:00", "every 2 hours"),
        ("tägliche Erinnerung um 8: Pillen", "Pillen", "12-01 08:00", "daily"),
        ("Erinnerung: Zahnarzt morgen um 14 Uhr", "Zahnarzt", "12-01 14:00", ""),
        ("weck mich um 7", "aufstehen", "12-01 07:00", ""),
        ("weck mich jeden Werktag um 7", "aufstehen", "12-01 07:00", "weekdays"),
        ("stelle einen Timer für 10 Minuten", "Timer", "11-30 10:10", ""),
        ("erinnere mich um 20 Uhr, alle Fenster zu schließen", "alle Fenster zu schließen",
         "11-30 20:00", ""),
        ("rappelle-moi à 20h de fermer toutes les fenêtres", "fermer toutes les fenêtres",
         "11-30 20:00", ""),
        ('erinnere mich um 20 Uhr "jeden Tag ist Sonntag"', "jeden Tag ist Sonntag",
         "11-30 20:00", ""),
        ("rappelle-moi demain à 9h d'appeler maman", "appeler maman", "12-01 09:00", ""),
        ("rappelle-moi d’appeler maman demain à 9h", "appeler maman", "12-01 09:00", ""),
        ("Rappelle moi dans 10 minutes de sortir le gâteau", "sortir le gâteau", "11-30 10:10",
         ""),
        ("rappelez-moi demain à 14h30 le rendez-vous", "le rendez-vous", "12-01 14:30", ""),
        ("peux-tu me rappeler demain à 9h d'appeler maman ?", "appeler maman", "12-01 09:00", ""),
        ("n'oublie pas de me rappeler demain à 9h d'appeler maman", "appeler maman",
         "12-01 09:00", ""),
        ("rappelle-moi que j'ai rendez-vous demain à 9h", "j'ai rendez-vous", "12-01 09:00", ""),
        ("s'il te plaît, rappelle-moi dans une heure de partir", "partir", "11-30 11:00", ""),
        ("fais-moi penser à acheter du pain ce soir à 18h", "acheter du pain", "11-30 18:00", ""),
        ("rappelle-moi tous les jours à 8h de prendre mes pilules", "prendre mes pilules",
         "12-01 08:00", "daily"),
        ("rappelle-moi chaque lundi à 8h de sortir les poubelles", "sortir les poubelles",
         "12-07 08:00", "weekly"),
        ("mets un rappel pour demain à 9h : appeler maman", "appeler maman", "12-01 09:00", ""),
        ("réveille-moi à 7h", "se lever", "12-01 07:00", ""),
        ("mets un minuteur de 10 minutes", "minuteur", "11-30 10:10", ""),
        ("recuérdame mañana a las 9 llamar a mamá", "llamar a mamá", "12-01 09:00", ""),
        ("recuerdame mañana a las 9 que tengo que salir", "tengo que salir", "12-01 09:00", ""),
        ("acuérdame en 10 minutos de sacar el pastel", "sacar el pastel", "11-30 10:10", ""),
        ("avísame a las 17:00 para salir", "salir", "11-30 17:00", ""),
        ("¿puedes recordarme mañana a las 9 llamar a mamá?", "llamar a mamá", "12-01 09:00", ""),
        ("no olvides recordarme mañana a las 9 pagar el alquiler", "pagar el alquiler",
         "12-01 09:00", ""),
        ("por favor, recuérdame dentro de 2 horas llamar a Juan", "llamar a Juan",
         "11-30 12:00", ""),
        ("recuérdame todos los días a las 8 tomar las pastillas", "tomar las pastillas",
         "12-01 08:00", "daily"),
        ("recuérdame de lunes a viernes a las 18:30 salir", "salir", "11-30 18:30", "weekdays"),
        ("ponme un recordatorio para mañana a las 9: llamar a mamá", "llamar a mamá",
         "12-01 09:00", ""),
        ("despiértame a las 7", "despertarse", "12-01 07:00", ""),
        ("recuérdame una vez a las 5 regar", "regar", "11-30 17:00", ""),
        ("rappelle-moi une fois à 17h de boire", "boire", "11-30 17:00", ""),
        ("rapelle moi demain à 9h d'appeler luc", "appeler luc", "12-01 09:00", ""),
        ("erinnere mich einmal um 17 Uhr ans Gehen", "Gehen", "11-30 17:00", ""),
        ("Wecker morgen 6 Uhr", "Wecker", "12-01 06:00", ""),
        ("Timer auf 10 Minuten", "Timer", "11-30 10:10", ""),
    ],
)  # fmt: skip
def test_a_reminder_keeps_its_text_in_its_language(
    message: str, text: str, first: str, rhythm: str, form: str
) -> None:
    intent = read(normalize(form, message))  # type: ignore[arg-type]
    assert isinstance(intent, Remind), intent
    assert intent.text == text
    assert f"{intent.when.at.astimezone(BERLIN):%m-%d %H:%M}" == first
    assert describe(intent.when.schedule, BERLIN, now=MONDAY) == rhythm


@pytest.mark.parametrize(
    ("message", "part"),
    [
        ("erinnere mich", "erinnere mich morgen um 9:00: Mama anrufen"),
        ("erinnere mich an Bob", "erinnere mich morgen um 9:00: Bob"),
        ("erinnere mich morgen", "erinnere mich morgen: Mama anrufen"),
        ("erinnere mich gestern an Bob", "already passed"),
        ("erinnere mich um 8, jeden Kunden anzurufen", "jeden Kunden"),
        ("Reminder um 8: immer lüften", '"immer"'),
        ("erinnere mich 10 Minuten vorher", "do not count back"),
        ("erinnere mich regelmäßig an die Pillen", '"regelmäßig"'),
        ("erinnere mich immer um 8 an die Pillen", '"immer"'),
        ("erinnere mich um 8 immer an die Pillen", '"immer"'),
        ("erinnere mich jede Vollmondnacht um 5 zu heulen", "jede"),
        ("erinnere mich dreimal um 8 an die Pillen", '"dreimal"'),
        ("rappelle-moi", "rappelle-moi demain à 9:00 : appeler maman"),
        ("rappelle-moi d'appeler Bob", "rappelle-moi demain à 9:00 : appeler Bob"),
        ("rappelle-moi demain", "rappelle-moi demain : appeler maman"),
        ("rappelle-moi une heure avant", "do not count back"),
        ("rappelle-moi souvent de boire", '"souvent"'),
        ("rappelle-moi chaque pleine lune à 5h de hurler", "chaque"),
        ("recuérdame", "recuérdame mañana a las 9:00: llamar a mamá"),
        ("recuérdame llamar a Bob", "recuérdame mañana a las 9:00: llamar a Bob"),
        ("recuérdame siempre a las 8 tomar agua", '"siempre"'),
        ("recuérdame cada luna llena a las 5 aullar", "cada"),
    ],
)
def test_what_is_missing_or_unclear_is_asked_about(message: str, part: str) -> None:
    intent = read(message)
    assert isinstance(intent, AskBack), intent
    assert part in intent.question


@pytest.mark.parametrize("message", ["erinnere mich", "rappelle-moi", "recuérdame"])
def test_the_example_is_understood(message: str) -> None:
    asked = read(message)
    assert isinstance(asked, AskBack)
    _, _, example = asked.question.partition("For example: ")
    assert isinstance(read(example), Remind)


@pytest.mark.parametrize(
    ("message", "deed", "target"),
    [
        ("lösche 2", Deed.CANCEL, TWO),
        ("bitte lösche die Erinnerung 2", Deed.CANCEL, TWO),
        ("Erinnerung 2 löschen", Deed.CANCEL, TWO),
        ("lösche 2 und 3", Deed.CANCEL, Numbers(numbers=(2, 3))),
        ("annule le rappel 2", Deed.CANCEL, TWO),
        ("annule 2 et 3", Deed.CANCEL, Numbers(numbers=(2, 3))),
        ("supprime le rappel numéro 2", Deed.CANCEL, TWO),
        ("cancela el 2", Deed.CANCEL, TWO),
        ("borra el 2", Deed.CANCEL, TWO),
        ("¿puedes cancelar el recordatorio 2?", Deed.CANCEL, TWO),
        ("pausiere 2", Deed.PAUSE, TWO),
        ("mets 2 en pause", Deed.PAUSE, TWO),
        ("pausa el 2", Deed.PAUSE, TWO),
        ("setze 2 fort", Deed.RESUME, TWO),
        ("reprends le rappel 2", Deed.RESUME, TWO),
        ("reanuda el 2", Deed.RESUME, TWO),
        ("zeig mir 2", Deed.GET, TWO),
        ("montre le rappel 2", Deed.GET, TWO),
        ("Verlauf von 2", Deed.HISTORY, TWO),
        ("stopp das", Deed.CANCEL, Latest()),
        ("erinnere mich nicht mehr daran", Deed.CANCEL, Latest()),
        ("arrête ça", Deed.CANCEL, Latest()),
        ("annule-le", Deed.CANCEL, Latest()),
        ("cancela esto", Deed.CANCEL, Latest()),
        ("cancélalo", Deed.CANCEL, Latest()),
    ],
)
def test_a_deed_is_read(message: str, deed: Deed, target: Target) -> None:
    assert read(message) == Act(deed=deed, target=target)


@pytest.mark.parametrize("message", ["lösche alle", "alle Erinnerungen löschen", "annule tout",
                                     "cancela todos"])  # fmt: skip
def test_all_at_once_is_refused(message: str) -> None:
    intent = read(message)
    assert isinstance(intent, WhichOne)
    assert "by number" in intent.question


@pytest.mark.parametrize(
    ("message", "target", "until"),
    [
        ("snooze 2 um 10 Minuten", TWO, "10:10"),
        ("snooze 2 pour 10 minutes", TWO, "10:10"),
        ("aplaza el 2 10 minutos", TWO, "10:10"),
        ("nochmal in 10 Minuten", Latest(), "10:10"),
        ("erinnere mich nochmal in 10 Minuten", Latest(), "10:10"),
        ("rappelle-moi encore dans 10 minutes", Latest(), "10:10"),
        ("recuérdame otra vez en 10 minutos", Latest(), "10:10"),
        ("erinnere mich in 10 Minuten daran", Latest(), "10:10"),
        ("erinnere mich daran in 10 Minuten", Latest(), "10:10"),
        ("rappelle-le-moi dans 10 minutes", Latest(), "10:10"),
        ("rappelle-moi ça dans 10 minutes", Latest(), "10:10"),
        ("recuérdamelo en 10 minutos", Latest(), "10:10"),
    ],
)
def test_a_snooze_is_read(message: str, target: Target, until: str) -> None:
    intent = read(message)
    assert isinstance(intent, Snooze), intent
    assert intent.target == target
    assert f"{intent.until.astimezone(BERLIN):%H:%M}" == until


@pytest.mark.parametrize(
    ("message", "target", "first"),
    [
        ("verschiebe 2 auf 17 Uhr", TWO, "11-30 17:00"),
        ("verschiebe Erinnerung 2 auf morgen um 9", TWO, "12-01 09:00"),
        ("verschieb das auf 17 Uhr", Latest(), "11-30 17:00"),
        ("déplace le rappel 2 à 17h", TWO, "11-30 17:00"),
        ("reporte le rappel 2 à demain 9h", TWO, "12-01 09:00"),
        ("mueve el 2 a las 17:00", TWO, "11-30 17:00"),
        ("cambia el recordatorio 2 a mañana a las 9", TWO, "12-01 09:00"),
    ],
)
def test_a_new_time_is_read(message: str, target: Target, first: str) -> None:
    intent = read(message)
    assert isinstance(intent, Move), intent
    assert intent.target == target
    assert f"{intent.when.at.astimezone(BERLIN):%m-%d %H:%M}" == first


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("benenne 2 um in Papa anrufen", "Papa anrufen"),
        ("renomme le rappel 2 en appeler papa", "appeler papa"),
        ("renombra el 2 a llamar a papá", "llamar a papá"),
    ],
)
def test_a_new_text_is_read(message: str, text: str) -> None:
    assert read(message) == Rename(number=2, text=text)


@pytest.mark.parametrize(
    ("message", "intent"),
    [
        ("meine Erinnerungen", ListReminders()),
        ("Welche Erinnerungen habe ich?", ListReminders()),
        ("zeig mir meine Erinnerungen", ListReminders()),
        ("was steht heute an?", ListReminders()),
        ("mes rappels", ListReminders()),
        ("quels sont mes rappels ?", ListReminders()),
        ("montre-moi mes rappels", ListReminders()),
        ("mis recordatorios", ListReminders()),
        ("¿qué recordatorios tengo?", ListReminders()),
        ("erledigt", Done()),
        ("c'est fait", Done()),
        ("ya está", Done()),
        ("Hilfe", Help()),
        ("was kannst du?", Help()),
        ("aide", Help()),
        ("¿qué puedes hacer?", Help()),
        ("wie spät ist es?", ClockQuestion()),
        ("quelle heure est-il ?", ClockQuestion()),
        ("¿qué hora es?", ClockQuestion()),
        ("Guten Morgen!", SmallTalk(kind=Talk.GREETING)),
        ("bonjour", SmallTalk(kind=Talk.GREETING)),
        ("hola", SmallTalk(kind=Talk.GREETING)),
        ("danke", SmallTalk(kind=Talk.THANKS)),
        ("merci beaucoup", SmallTalk(kind=Talk.THANKS)),
        ("muchas gracias", SmallTalk(kind=Talk.THANKS)),
        ("wer bist du?", SmallTalk(kind=Talk.IDENTITY)),
        ("ça va ?", SmallTalk(kind=Talk.WELL_BEING)),
        ("tschüss", SmallTalk(kind=Talk.FAREWELL)),
        ("Zeitzone Europe/Paris", NotYet(feature=Feature.TIME_ZONE)),
    ],
)
def test_other_messages_are_told_apart(message: str, intent: Intent) -> None:
    assert read(message) == intent
