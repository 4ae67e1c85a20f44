"""What the cost model predicts, from the newest file that `predict --lessons --json` wrote into docs/results/model.

    <!-- model: climb -->                what the climb's kernels should take and took, for each size
    <!-- model: slots -->                the same for the numbers of slots of lessons 03, 04 and 05
    <!-- model: bounds -->               lessons 01 and 07 against what bounds them
    <!-- model: errors -->               how far off the predictions of each lesson are, all its rows together
    <!-- model: picture two_roles -->    a drawing, with the command that draws it (two_roles, three_roles)
    <!-- end -->
"""
import json

from climb_table import BadInput, folder_of, shape, shape_title
from page_requests import markdown
from records import BY_NAME
from stale import dated, head_of

NAMED_SETTINGS = ("along", "copy", "kernel", "step", "roles", "blocks")  # what tells the kernels of one lesson apart, besides the slots
FAR_OFF = 10  # percent


def read_model(folder):
    path = max(folder.glob("*.json"), default=None)
    if path is None:
        raise BadInput(f"{folder}: holds no predictions; `predict --lessons --json` writes them")
    try:
        model = json.loads(path.read_text(encoding="utf-8"))
        for key in ("date", "commit", "gpu", "steps", "climb", "slots", "bounds", "pictures"):
            if key not in model:
                raise BadInput(f"{path}: is no file of predictions: '{key}' is missing")
    except (ValueError, TypeError) as error:
        raise BadInput(f"{path}: is no file of predictions: {error}") from error
    return model


def kernel(prediction):
    """What makes a row: the lesson with its link, the settings that matter, and the slots."""
    name = f"[{prediction['lesson']}](../{folder_of(prediction['lesson'])}/)"
    details = [f"{key} {prediction['settings'][key]}" for key in NAMED_SETTINGS if key in prediction["settings"]]
    return ", ".join([name] + details), prediction["slots"]


def error(prediction):
    return f"{prediction['error_percent']:+.0f} %".replace("-", "−")


def predictions(model, which):
    """One row for each kernel; for each size what was predicted, what was measured, and the error."""
    list_ = model[which]
    sizes = list(dict.fromkeys(shape(prediction) for prediction in list_))
    by_place = {(kernel(prediction), shape(prediction)): prediction for prediction in list_}
    header = ["kernel", "slots", "takes the time"]
    for size in sizes:
        header += [f"{shape_title(size)}: predicted, µs", "measured", "error"]
    rows = []
    for key in dict.fromkeys(kernel(prediction) for prediction in list_):
        bounds = dict.fromkeys(prediction["bound"] for prediction in list_ if kernel(prediction) == key)
        row = [key[0], str(key[1]), " or ".join(bounds)]
        for size in sizes:
            found = by_place.get((key, size))
            row += [f"{found['predicted_us']:.0f}", f"{found['measured_us']:.0f}", error(found)] if found else [""] * 3
        rows.append(row)
    return markdown(header, rows)


def bounds(model):
    """One row for each run: there is no ring."""
    rows = [[kernel(one)[0], shape_title(shape(one)), one["bound"], f"{one['predicted_us']:.0f}", f"{one['measured_us']:.0f}",
             error(one)] for one in model["bounds"]]
    return markdown(["kernel", "M×N×K", "takes the time", "predicted, µs", "measured", "error"], rows)


def gpus_of_inputs(results):
    """"NVIDIA H200; levels: NVIDIA H100": of the records that the predictions are made of."""
    by_gpu = {}
    for name in BY_NAME["model"].inputs:
        path = BY_NAME[name].newest(results)
        if path is not None:
            head = head_of(json.loads(path.read_text(encoding="utf-8")))
            by_gpu.setdefault(head["gpu"], []).append(name)
    most = max(by_gpu, key=lambda gpu: len(by_gpu[gpu]), default="")
    return "; ".join([most] + [f"{', '.join(names)}: {gpu}" for gpu, names in by_gpu.items() if gpu != most])


def errors(model, results):
    """A row for each lesson: how many predictions there are, the smallest and the largest error, and how many are far off."""
    by_lesson = {}
    for prediction in model["climb"] + model["slots"] + model["bounds"]:
        by_lesson.setdefault(prediction["lesson"], []).append(prediction)
    rows = []
    for lesson, of_lesson in sorted(by_lesson.items()):
        of_lesson.sort(key=lambda prediction: prediction["error_percent"])
        beyond = sum(abs(prediction["error_percent"]) > FAR_OFF for prediction in of_lesson)
        rows.append([f"[{lesson}](../{folder_of(lesson)}/)", str(len(of_lesson)), error(of_lesson[0]), error(of_lesson[-1]), str(beyond)])
    return markdown(["lesson", "predictions", "error from", "to", f"beyond {FAR_OFF} %"], rows) + ["", origin(model, results)]


def picture(model, name):
    if name not in model["pictures"]:
        raise BadInput(f"model: picture {name}: there is {', '.join(model['pictures'])}")
    drawn = model["pictures"][name]
    return ["```", f"$ {drawn['command']}"] + drawn["lines"] + ["```"]


def origin(model, results):
    return (f"{gpus_of_inputs(results)}; {dated(model)}, commit `{model['commit']}`; measured times from the result files, predicted "
            "ones by `predict --lessons` for the clock that each kernel was measured at.")


def model_table(line, words, folder):
    """The lines that stand for `<!-- model: WORDS -->`; the newest file of `folder` is read."""
    model = read_model(folder)
    if words in (["climb"], ["slots"]):
        return predictions(model, words[0])
    if words == ["bounds"]:
        return bounds(model)
    if words == ["errors"]:
        return errors(model, folder.parent)
    if len(words) == 2 and words[0] == "picture":
        return picture(model, words[1])
    raise BadInput(f"{line}: asks for neither climb, slots, bounds, errors nor picture NAME")
