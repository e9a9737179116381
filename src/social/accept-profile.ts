import { normalizeEmail } from '../http/email-address'
import { normalizeProfile } from '../providers/normalize-profile'
import type { OAuthUser } from '../providers/provider-client'

/** Converts the profile of any client to the form of our tables and rules. An address that fails our rule counts as missing. */
export function acceptProfile(given: OAuthUser): OAuthUser {
  const profile = normalizeProfile(given.provider, given)
  const email = normalizeEmail(profile.email)
  return { ...profile, email, emailVerified: email === null ? null : profile.emailVerified }
}
