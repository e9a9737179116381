import { normalizeEmail } from '../http/email-address'
import { normalizeProfile } from '../providers/normalize-profile'
import type { OAuthUser } from '../providers/provider-client'

/** Prepares any client's profile for our tables and rules. An email that is not valid counts as missing. */
export function acceptProfile(given: OAuthUser): OAuthUser {
  const profile = normalizeProfile(given.provider, given)
  const email = normalizeEmail(profile.email)
  return { ...profile, email, emailVerified: email === null ? null : profile.emailVerified }
}
