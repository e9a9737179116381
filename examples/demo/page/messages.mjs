/** What people read instead of codes. */
import { language, texts } from './texts.mjs'

export const providers = { acme: 'Acme ID', octo: 'Octo ID' }

/** A refusal's sentence; `provider` is the name of the one the person was sent to. */
export function explain({ code, details } = {}, provider = texts.theProvider) {
  const seconds = details?.retry_after_seconds
  if (seconds) return texts.wait(seconds, clockIn(seconds))
  return texts.codes(provider)[code] ?? texts.unexpected
}

/**
 * What to say about a refused form, and beside which field; `own` are the sentences that mean something else in this form.
 * A refused password names its rule, anything else its field.
 */
export function refusal({ body }, { passwordField = 'password', own = {} } = {}) {
  const { rule, errors } = body?.details ?? {}
  if (body?.code === 'VALIDATION_ERROR' && rule) return { field: passwordField, text: passwordRule(body.details) }
  const refused = body?.code === 'VALIDATION_ERROR' ? errors?.[0] : null
  if (refused?.path) return { field: refused.path, text: fieldRule(refused) }
  return { field: null, text: own[body?.code] ?? explain(body ?? {}) }
}

/** The same of `callWithProof`: there a 401 is about the code, about the current password, or about the session. */
export function refusalOfProof(answer) {
  if (answer.sessionEnded) return { field: null, text: texts.signedOut }
  if (answer.body?.code === 'MFA_CODE_INVALID') return { field: 'code', text: texts.wrongCode }
  if (answer.status === 401) return { field: 'current_password', text: texts.notYourPassword }
  return refusal(answer, { passwordField: 'new_password' })
}

export function passwordRule({ rule, min, missing }) {
  if (rule === 'too_short') return texts.password.too_short(min)
  if (rule === 'missing_classes') return texts.password.missing_classes(missing.map((name) => texts.classes[name]))
  return texts.password[rule] ?? texts.password.other
}

export function formatInstant(instant) {
  return new Date(instant).toLocaleString(language, { dateStyle: 'medium', timeStyle: 'short' })
}

function fieldRule({ path, rule }) {
  return rule === 'unchanged' ? texts.sameAddress : (texts.fields[path] ?? texts.fields.other)
}

function clockIn(seconds) {
  return new Date(Date.now() + seconds * 1000).toLocaleTimeString(language, { timeStyle: 'short' })
}
