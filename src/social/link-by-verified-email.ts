import { type AuthContext, unitOfWork } from '../context'
import { OAuthProviderAlreadyLinkedError } from '../errors'
import type { Locale } from '../http/locale'
import { recordMailboxProof } from '../mailbox/record-proof'
import { mailNotice } from '../mailbox/send-mail'
import { hasPassword, unusablePassword } from '../passwords/unusable-password'
import type { OAuthUser } from '../providers/provider-client'
import { finishLogin, type OpenSession, type TokenPair } from '../session/finish-login'
import { endSessions } from '../session/log-out'
import type { UserRecord } from '../store/auth-store'
import { identitiesOf, identityRecord } from './identities'
import type { SocialLogin } from './log-in-with-identity'

/**
 * Links a verified address's identity to the account that holds the address. Where that account never proved the
 * address, whoever registered it first may be a stranger waiting for the owner (pre-hijacking): then everything that
 * lets anyone in ends first, in the same unit (contract section 13 (a)).
 *
 * Null when the account changed since it was looked at.
 */
export async function linkByVerifiedEmail(
  ctx: AuthContext,
  seen: UserRecord,
  profile: OAuthUser,
  open: OpenSession<TokenPair>,
  locale: Locale,
): Promise<SocialLogin | null> {
  const wasProven = isProven(ctx, seen)
  const login = await unitOfWork(ctx, async (ctx) => {
    const user = await ctx.store.users.lock(seen.id)
    if (!user?.isActive || user.email !== profile.email || isProven(ctx, user) !== wasProven) return null
    if (wasProven) return link(ctx, user, profile, open)
    const { cleared, ended } = await dispossess(ctx, user)
    const login = await link(ctx, cleared, profile, open)
    return login && { ...login, ended }
  })
  if (login) tellOwner(ctx, seen, profile, { locale, passwordReplaced: !wasProven && hasPassword(seen) })
  return login
}

/** Whoever chose the password that was replaced may be the owner of the address after all: then it no longer works. */
function tellOwner(
  ctx: AuthContext,
  owner: UserRecord,
  { provider }: OAuthUser,
  { locale, passwordReplaced }: { locale: Locale; passwordReplaced: boolean },
): void {
  mailNotice(ctx, owner, 'identity_linked', locale, provider)
  if (passwordReplaced) mailNotice(ctx, owner, 'password_changed', locale)
}

async function link(ctx: AuthContext, user: UserRecord, profile: OAuthUser, open: OpenSession<TokenPair>): Promise<SocialLogin | null> {
  const now = ctx.now()
  const linked = await identitiesOf(ctx).listForUser(user.id)
  const sameProvider = linked.find((identity) => identity.provider === profile.provider)
  if (sameProvider?.subject === profile.subject) return null // another tab was first
  if (sameProvider) throw new OAuthProviderAlreadyLinkedError()
  await identitiesOf(ctx).insert(identityRecord(user.id, profile, now))
  await ctx.store.users.update(user.id, { lastLoginAt: now, updatedAt: now })
  return { result: await finishLogin(ctx, user, { amr: ['ext'], provider: profile.provider }, open), did: 'linked' }
}

/** A table without the column proves nothing by itself: the host vouches for its addresses, or nobody does. */
function isProven(ctx: AuthContext, user: UserRecord): boolean {
  return ctx.store.users.fields.has('emailVerifiedAt') ? user.emailVerifiedAt !== null : ctx.settings.assumeEmailsProven
}

/** What is left belongs to the owner of the address. Sessions, one-shot tokens, factor, recovery codes, identities and the password: whatever the first registrant held. */
async function dispossess(ctx: AuthContext, user: UserRecord): Promise<{ cleared: UserRecord; ended: SocialLogin['ended'] }> {
  const now = ctx.now()
  await endSessions(ctx, user.id)
  await ctx.store.userTokens.consumeAllForUser(user.id, now)
  await ctx.store.recoveryCodes?.deleteForUser(user.id)
  const providers = (await identitiesOf(ctx).listForUser(user.id)).map(({ provider }) => provider)
  await identitiesOf(ctx).deleteForUser(user.id)
  const changes = { hashedPassword: unusablePassword(), passwordSetAt: null, totpSecret: null, totpEnabledAt: null, totpLastStep: null }
  await recordMailboxProof(ctx, user, changes)
  const cleared = { ...user, ...changes, emailVerifiedAt: now, updatedAt: now }
  return { cleared, ended: { providers, factor: user.totpEnabledAt !== null } }
}
