import { hasPasswords } from '../config/has-passwords'
import { type AuthContext, passkeysOf } from '../context'
import type { Locale } from '../http/locale'
import { writeMail } from '../mail/write-mail'
import { endOneShots } from '../mailbox/email-logins-of'
import { hasPassword, unusablePassword } from '../passwords/unusable-password'
import { writableFields } from '../profile/writable-fields'
import { endOtherSessions } from '../session/log-out'
import type { IdentityRecord, UserChanges, UserRecord } from '../store/auth-store'
import { transactionOf } from '../store/knex/knex-store'
import { nameOfThing, type RemovedThing } from './removed-thing'

/** What a take-over removed. */
export interface TakenOver {
  readonly removed: readonly RemovedThing[]
  /** For the user's row; the caller writes them. */
  readonly changes: UserChanges
}

/** How long the person may take to choose a password after a proof that removed it. */
export const newPasswordSeconds = 900

/** Which words of an earlier signup are cleared. `name`: by a placeholder, where the columns take no null. */
export type Clearing = 'nothing' | 'name' | 'name and fields'

/**
 * Removes every way to log in to an account whose address was never verified, because an attacker may have registered it: the
 * sessions, the single-use values except UNDO, the second factor, the recovery codes, the passkeys, and the identities but those whose provider verified this
 * very address. The password becomes an unusable marker. Inside the caller's transaction, which has locked the user's row.
 */
export async function takeOver(ctx: AuthContext, user: UserRecord, clearing: Clearing): Promise<TakenOver> {
  const { sessions, recoveryCodes } = ctx.store
  const hadSessions = ((await sessions?.listForUser(user.id, ctx.now())) ?? []).length > 0
  await endOtherSessions(ctx, user.id)
  await endOneShots(ctx, user)
  await recoveryCodes?.deleteForUser(user.id)
  const providers = await removeIdentities(ctx, user)
  const passkeys = await removePasskeys(ctx, user.id)
  return {
    removed: [
      ...(hasPasswords(ctx.settings) && hasPassword(user) ? [{ kind: 'password' } as const] : []),
      ...(user.totpEnabledAt ? [{ kind: 'second_factor' } as const] : []),
      ...providers.map((provider) => ({ kind: 'identity', provider }) as const),
      ...(passkeys.length > 0 ? [{ kind: 'passkeys', ids: passkeys } as const] : []),
      ...(hadSessions ? [{ kind: 'sessions' } as const] : []),
      ...(clearing === 'nothing' ? [] : [{ kind: 'profile' } as const]),
    ],
    changes: {
      hashedPassword: unusablePassword(),
      passwordSetAt: null,
      totpSecret: null,
      totpEnabledAt: null,
      totpLastStep: null,
      ...clearedProfile(ctx, clearing),
    },
  }
}

/** What the host granted ends in the same transaction. */
export async function tellHostOfTakeOver(ctx: AuthContext, user: UserRecord): Promise<void> {
  await ctx.onTakeOver?.(user, ctx.store, { trx: transactionOf(ctx.store) })
}

/**
 * Tells observers and the owner, once it is committed. The host's own events of what was removed come along.
 * @param about `provider`: the registration key of the identity that was linked by the same proof
 */
export function announceTakeOver(
  ctx: AuthContext,
  user: UserRecord,
  { removed }: TakenOver,
  about: { locale?: Locale | undefined; provider?: string },
): void {
  const userId = user.id
  ctx.events.emit('account.taken_over', { userId })
  if (removed.length === 0) return
  for (const thing of removed) {
    if (thing.kind === 'identity') ctx.events.emit('identity.unlinked', { userId, provider: thing.provider })
    if (thing.kind === 'passkeys') for (const passkeyId of thing.ids) ctx.events.emit('passkey.removed', { userId, passkeyId })
    if (thing.kind === 'second_factor') ctx.events.emit('mfa.disabled', { userId })
  }
  mailOwner(ctx, user, removed, about)
}

/** Outside the rate limits of mail: each of them needs a link or a sign-in of the owner's. An attacker may have chosen the name. */
function mailOwner(
  ctx: AuthContext,
  { id, email }: UserRecord,
  removed: readonly RemovedThing[],
  { locale = ctx.settings.defaultLocale, provider }: { locale?: Locale | undefined; provider?: string },
): void {
  const items = removed.map((thing) => nameOfThing(ctx, thing, locale))
  const mail = {
    topic: 'account_taken_over',
    to: email,
    name: null,
    saysName: false,
    locale,
    items,
    ...(provider !== undefined && { provider }),
  } as const
  ctx.postman?.post(writeMail(ctx, mail), id)
}

async function removeIdentities(ctx: AuthContext, user: UserRecord): Promise<string[]> {
  const linked = (await ctx.store.identities?.listForUser(user.id)) ?? []
  const providers = linked.filter((identity) => !standsFor(identity, user.email)).map(({ provider }) => provider)
  // One identity per provider and user: the provider names it.
  for (const provider of providers) await ctx.store.identities?.deleteForUser(user.id, provider)
  return providers
}

async function removePasskeys(ctx: AuthContext, userId: string): Promise<string[]> {
  const ids = ((await passkeysOf(ctx)?.listForUser(userId)) ?? []).map(({ id }) => id)
  if (ids.length > 0) await passkeysOf(ctx)?.deleteForUser(userId)
  return ids
}

/** Silence of the provider (null) is not its word. */
function standsFor({ email, emailVerified }: IdentityRecord, address: string): boolean {
  return email === address && emailVerified === true
}

function clearedProfile(ctx: AuthContext, clearing: Clearing): UserChanges {
  if (clearing === 'nothing') return {}
  return clearing === 'name'
    ? { name: ctx.texts.say(ctx.settings.defaultLocale, 'account.placeholder_name') }
    : { name: null, ...emptyFields(ctx) }
}

/** The fields that a person may write, emptied. */
export function emptyFields(ctx: AuthContext): Pick<UserChanges, 'fields'> {
  const names = writableFields(ctx)
  return names.length > 0 ? { fields: Object.fromEntries(names.map((name) => [name, null])) } : {}
}
