import type { OAuthUser } from './provider-client'
import { unusableIdentity } from './provider-refusal'
import { isPlainObject } from './provider-request'

/**
 * Makes a provider's profile safe to store. The subject becomes a string that every database keeps unchanged. The function never guesses
 * whether an address is verified. The name and the picture become safe to show. The email stays unchanged, or becomes null if it is not a
 * string. The login decides later whether the email counts.
 *
 * @throws OAuthError when the profile has no usable subject
 */
export function normalizeProfile(provider: string, profile: unknown): OAuthUser {
  const { subject, email, emailVerified, name, picture, sid, raw } = isPlainObject(profile) ? profile : {}
  return {
    provider,
    subject: requireSubject(provider, subject),
    email: typeof email === 'string' ? email : null,
    emailVerified: verificationOf(emailVerified),
    name: displayName(name),
    picture: pictureUrl(picture),
    ...(isStorable(sid) && { sid }),
    raw: isPlainObject(raw) ? raw : {},
  }
}

/**
 * Returns the subject as text. A subject has at most 255 characters and is case sensitive (OpenID Connect Core section 2). A safe integer
 * becomes its decimal text. Rejects control characters and lone surrogates, because a database can change them. Then two people could get
 * the same subject.
 *
 * @throws OAuthError
 */
export function requireSubject(provider: string, value: unknown): string {
  const subject = Number.isSafeInteger(value) ? String(value) : value
  if (isStorable(subject)) return subject
  throw unusableIdentity(provider, 'the provider gave no usable subject')
}

function isStorable(value: unknown): value is string {
  return typeof value === 'string' && value.length >= 1 && value.length <= 255 && !/[\p{Cc}\p{Cs}]/u.test(value)
}

/**
 * Returns true or false, also for the texts "true" and "false", because some providers quote the value. Returns null for any other value.
 */
export function verificationOf(value: unknown): boolean | null {
  if (value === true || value === 'true') return true
  if (value === false || value === 'false') return false
  return null
}

/** Removes control characters and bidirectional characters, because they can make a name look like another name. */
function displayName(value: unknown): string | null {
  if (typeof value !== 'string') return null
  const visible = value.replace(/[\p{Cc}\p{Cs}\p{Bidi_Control}\u2028\u2029]/gu, '').trim()
  return [...visible].slice(0, 200).join('').trim() || null
}

function pictureUrl(value: unknown): string | null {
  if (typeof value !== 'string' || value.length > 1024 || !URL.canParse(value)) return null
  const url = new URL(value)
  const isPlain = url.protocol === 'https:' && url.username === '' && url.password === ''
  // `href` is the parsed spelling: the parser encodes or removes quotes, blanks and line breaks.
  return isPlain && url.href.length <= 1024 ? url.href : null
}
