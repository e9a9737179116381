import type { Settings } from '../core/config/every-setting'
import {
  OAuthAccountInactiveError,
  OAuthEmailMissingError,
  OAuthEmailTakenError,
  OAuthEmailUnverifiedError,
  OAuthRegistrationDisabledError,
} from '../core/errors'
import type { OAuthUser } from '../providers/provider-client'
import type { UserRecord } from '../store/auth-store'

export interface FoundAccounts {
  /** The account that is linked to this provider and subject. */
  linked: UserRecord | null
  /** The account of the provider's email. */
  emailOwner: UserRecord | null
  /** True: `emailOwner` waits for its activation, and this login can be the first verification of its address. */
  isEmailOwnerPending?: boolean
}

export type IdentityDecision = { kind: 'log_in'; user: UserRecord } | { kind: 'link'; user: UserRecord } | { kind: 'create'; email: string }

type Rules = Pick<Settings, 'oauthLinkByVerifiedEmail' | 'oauthAllowAccountCreation'>

/**
 * Decides which account an external identity belongs to. If the identity is linked, the link alone decides. The email decides only if there
 * is no link.
 */
export function decideIdentity(
  settings: Rules,
  profile: Pick<OAuthUser, 'email' | 'emailVerified'>,
  found: FoundAccounts,
): IdentityDecision {
  if (found.linked) return { kind: 'log_in', user: active(found.linked) }
  if (profile.email === null) throw new OAuthEmailMissingError()
  if (found.emailOwner) {
    if (!settings.oauthLinkByVerifiedEmail) throw new OAuthEmailTakenError()
    if (profile.emailVerified !== true) throw new OAuthEmailUnverifiedError() // an unknown state (null) does not count as verified
    return { kind: 'link', user: found.isEmailOwnerPending ? found.emailOwner : active(found.emailOwner) }
  }
  if (!settings.oauthAllowAccountCreation) throw new OAuthRegistrationDisabledError()
  return { kind: 'create', email: profile.email }
}

function active(user: UserRecord): UserRecord {
  if (!user.isActive) throw new OAuthAccountInactiveError()
  return user
}
