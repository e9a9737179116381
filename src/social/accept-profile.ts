import { normalizeEmail } from '../http/email-address'
import { normalizeProfile } from '../providers/normalize-profile'
import type { OAuthUser } from '../providers/provider-client'

/** Prepares any client's profile for our tables and rules. An email that is not valid counts as missing. */
export function acceptProfile(given: OAuthUser): OAuthUser {
  const profile = normalizeProfile(given.provider, given)
  // No person typed this address. With a blank, it is another address to the provider, so it must not become somebody's.
  const hasBlank = typeof profile.email === 'string' && profile.email !== profile.email.trim()
  const email = hasBlank ? null : normalizeEmail(profile.email)
  return { ...profile, email, emailVerified: email === null ? null : profile.emailVerified }
}
