import type { AuthContext } from '../context'
import { ServiceUnavailableError } from '../errors'
import type { Locale } from '../http/locale'
import { normalizeProfile } from '../providers/normalize-profile'
import type { OAuthUser } from '../providers/provider-client'
import { announceLogin } from '../session/announce-login'
import type { LoginResult, OpenSession, TokenPair } from '../session/finish-login'
import { DuplicateRecordError, type UserRecord } from '../store/auth-store'
import { acceptProfile } from './accept-profile'
import { createAccount } from './create-account'
import { decideIdentity, type FoundAccounts } from './decide-identity'
import { identitiesOf } from './identities'
import { linkByVerifiedEmail } from './link-by-verified-email'
import { logInLinked } from './log-in-linked'

/** What happened beside the session; told to observers once it is committed. */
export interface SocialLogin {
  result: LoginResult
  did: 'logged_in' | 'linked' | 'created'
  /** What the first registrant of an unproven address held, and lost. */
  ended?: { providers: readonly string[]; factor: boolean } | undefined
}

const rounds = 4

/**
 * Turns an external identity into a session: finds the account, or links or creates one, as the specification's
 * identity resolution says.
 *
 * Each round looks, decides, and acts in one unit of work that checks again what the decision stood on. A racer that
 * changed it meanwhile (the same first login in another tab, an unlink, a signup) makes this one look again.
 * @throws OAuthEmailMissingError, OAuthEmailTakenError, OAuthEmailUnverifiedError, OAuthProviderAlreadyLinkedError,
 *   OAuthAccountInactiveError, OAuthRegistrationDisabledError, OAuthError (an unusable profile)
 */
export async function logInWithIdentity(
  ctx: AuthContext,
  given: OAuthUser,
  open: OpenSession<TokenPair>,
  options: { locale?: Locale } = {},
): Promise<LoginResult> {
  const profile = normalizeProfile(given.provider, given)
  for (let round = 1; round <= rounds; round += 1) {
    const login = await tryOnce(ctx, profile, open, options.locale ?? ctx.settings.defaultLocale)
    if (!login) continue
    announce(ctx, profile, login)
    return login.result
  }
  throw new ServiceUnavailableError()
}

async function tryOnce(ctx: AuthContext, given: OAuthUser, open: OpenSession<TokenPair>, locale: Locale): Promise<SocialLogin | null> {
  const linked = await findLinked(ctx, given)
  // Of an identity that is linked the address decides nothing: it is not looked at.
  const profile = linked ? given : acceptProfile(given)
  const decision = decideIdentity(ctx.settings, profile, linked ? { linked, emailOwner: null } : await findByEmail(ctx, profile))
  try {
    if (decision.kind === 'log_in') return await logInLinked(ctx, decision.user.id, profile, open)
    if (decision.kind === 'link') return await linkByVerifiedEmail(ctx, decision.user, profile, open, locale)
    return await createAccount(ctx, decision.email, profile, open, locale)
  } catch (error) {
    if (error instanceof DuplicateRecordError) return null
    throw error
  }
}

/**
 * After a look for the identity. Two looks are not one: a first login in another tab may have committed between them, and
 * whoever holds the address is then this identity's own account.
 */
async function findByEmail(ctx: AuthContext, profile: OAuthUser): Promise<FoundAccounts> {
  if (profile.email === null) return { linked: null, emailOwner: null }
  const emailOwner = await ctx.store.users.findByEmail(profile.email)
  return { linked: emailOwner && (await findLinked(ctx, profile)), emailOwner }
}

async function findLinked(ctx: AuthContext, { provider, subject }: OAuthUser): Promise<UserRecord | null> {
  return (await identitiesOf(ctx).findWithUser(provider, subject))?.user ?? null
}

function announce(ctx: AuthContext, { provider }: OAuthUser, { result, did, ended }: SocialLogin): void {
  const { userId } = result
  for (const unlinked of ended?.providers ?? []) ctx.events.emit('identity.unlinked', { userId, provider: unlinked })
  if (ended?.factor) ctx.events.emit('mfa.disabled', { userId })
  if (did === 'created') ctx.events.emit('signup', { userId, by: 'ext', provider })
  if (did !== 'logged_in') ctx.events.emit('identity.linked', { userId, provider })
  announceLogin(ctx, result, { provider })
}
