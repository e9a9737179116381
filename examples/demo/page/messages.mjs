/** What people read instead of codes. */

export const providers = { acme: 'Acme ID', octo: 'Octo ID' }

export const unexpected = 'Something went wrong. Please try again.'
export const unreachable = 'The app does not answer. Is it still running?'

/** A refusal's sentence; `provider` is the name of the one the person was sent to. */
export function explain({ code, details } = {}, provider = 'The provider') {
  const seconds = details?.retry_after_seconds
  if (seconds) return `That was a lot of attempts. Please wait ${seconds} seconds (until ${clockIn(seconds)}) and try again.`
  return sentences(provider)[code] ?? unexpected
}

/**
 * What to say about a refused form, and beside which field; `own` are the sentences that mean something else in this form.
 * A refused password names its rule, anything else its field.
 */
export function refusal({ body }, { passwordField = 'password', own = {} } = {}) {
  const { rule, errors } = body?.details ?? {}
  if (body?.code === 'VALIDATION_ERROR' && rule) return { field: passwordField, text: passwordRule(body.details) }
  const field = body?.code === 'VALIDATION_ERROR' ? errors?.[0]?.path : null
  if (field) return { field, text: fields[field] ?? 'This cannot be used.' }
  return { field: null, text: own[body?.code] ?? explain(body ?? {}) }
}

export function passwordRule({ rule, min, missing }) {
  if (rule === 'too_short') return `That is too short: use at least ${min} characters. A few words in a row are easy to remember.`
  if (rule === 'missing_classes') return `Add ${missing.map((name) => classes[name]).join(' and ')}.`
  return rules[rule] ?? 'This password cannot be used. Please choose another one.'
}

const rules = {
  too_long: 'That is too long. Please use a shorter one.',
  too_common: 'That is easy to guess: a common password, a repetition, or your own name or address. Please choose another one.',
  malformed: 'There is a broken character in it. Please type it again.',
}

const classes = { lower: 'a small letter', upper: 'a capital letter', digit: 'a digit', special: 'a sign such as ! or ?' }

const fields = {
  email: 'This does not look like an email address.',
  name: 'Please use at most 120 characters.',
}

function clockIn(seconds) {
  return new Date(Date.now() + seconds * 1000).toLocaleTimeString(undefined, { timeStyle: 'short' })
}

function sentences(provider) {
  return {
    OAUTH_PROVIDER_DENIED: `You chose not to share your ${provider} account, so nothing has changed. You can try again whenever you like.`,
    OAUTH_STATE_MISMATCH: 'That took too long or was started somewhere else. Please start again.',
    OAUTH_ACCOUNT_INACTIVE: 'This account is not active. Signed up here just now? Then open the link in your mail first.',
    OAUTH_EMAIL_MISSING: `${provider} did not share an email address, and a new account here needs one. Sign in another way first, then link ${provider}.`,
    OAUTH_EMAIL_TAKEN: 'There is already an account with this email address.',
    OAUTH_EMAIL_UNVERIFIED: `There is already an account with this email address, and ${provider} does not say that the address is yours. Sign in as you did before, then link ${provider}.`,
    OAUTH_IDENTITY_TAKEN: `That ${provider} account is linked to another account here. Unlink it there first, or choose another one.`,
    OAUTH_PROVIDER_ALREADY_LINKED: `You have already linked an ${provider} account. Unlink it first to link another one.`,
    OAUTH_REGISTRATION_DISABLED: 'This app is not taking new accounts right now.',
    OAUTH_ERROR: `${provider} did not finish. Please try again.`,
    OAUTH_PROVIDER_UNAVAILABLE: `${provider} cannot be reached right now. Please try again in a moment.`,
    INVALID_TOKEN: 'This link has been used already, or it is too old.',
    TOO_MANY_REQUESTS: 'That was a lot of attempts. Please wait a minute and try again.',
    SERVICE_UNAVAILABLE: 'The app is busy. Please try again in a moment.',
  }
}
