import { normalizeEmail } from '../http/email-address'
import { normalizeProfile } from '../providers/normalize-profile'
import type { OAuthUser } from '../providers/provider-client'

/** A profile as our tables and rules take it, whoever's client it came from; an address that fails our rule counts as missing. */
export function acceptProfile(given: OAuthUser): OAuthUser {
  const profile = normalizeProfile(given.provider, given)
  const email = normalizeEmail(profile.email)
  return { ...profile, email, emailVerified: email === null ? null : profile.emailVerified }
}
