import { type AuthContext, unitOfWork } from '../context'
import { EmailTakenError } from '../errors'
import { requireEmail } from '../http/email-address'
import type { Locale } from '../http/locale'
import { issueLink, type LinkToken } from '../mailbox/email-link'
import { mailLink, mailNotice, mayMail } from '../mailbox/send-mail'
import { checkPassword } from '../passwords/check-password'
import { announceLogin } from '../session/announce-login'
import { finishLogin, type LoginResult } from '../session/finish-login'
import { DuplicateRecordError, type NewUser, type UserRecord } from '../store/auth-store'
import { ACTIVATION_WITHHELD, refusesEmailLink } from './refuses-email-link'

export interface SignUpInput {
  email: string
  password: string
  /** At most 120 characters. */
  name?: string | null | undefined
  /** Of the mail. Default: `defaultLocale`. */
  locale?: Locale | undefined
  /** What else the host's signup schema let through; handed to `onSignup`. */
  extra?: object | undefined
}

export interface SignedUp {
  user: UserRecord
  /** Null: born active. */
  activation: LinkToken | typeof ACTIVATION_WITHHELD | null
  /** Of an account born active, when one was asked for. */
  session: LoginResult | null
}

/**
 * A local account: active at once with `autoActivate`, else waiting for its link. The account, its link and what the
 * host's `onSignup` writes are one unit: either all of it is there, or nothing is.
 * @throws ValidationError (address, password), EmailTakenError, ServiceUnavailableError, and what `onSignup` throws
 */
export async function signUp(ctx: AuthContext, input: SignUpInput, { logsIn }: { logsIn: boolean }): Promise<SignedUp> {
  const email = requireEmail(input.email)
  const name = input.name ?? null
  await checkPassword(ctx, input.password, { email, name })
  // A taken address costs the same hash: the time of the answer says nothing about it.
  const hashedPassword = await ctx.hasher.hash(input.password)
  const owner = await ctx.store.users.findByEmail(email)
  if (owner) throw new EmailTakenError()
  const account = await insertAccount(ctx, newAccount(ctx, { email, name, hashedPassword }), { ...input.extra, email, name }, logsIn)
  const { user, session } = account
  ctx.events.emit('signup', { userId: user.id, by: 'pwd' })
  if (session) announceLogin(ctx, session)
  const activation = user.isActive ? null : (account.link ?? (await firstLink(ctx, user)))
  if (activation && activation !== ACTIVATION_WITHHELD && (await mayMail(ctx, user)))
    mailLink(ctx, user, 'activation', activation, input.locale ?? ctx.settings.defaultLocale)
  return { user, activation, session }
}

/** For a signup whose answer does not say that the address is taken: its owner is told instead. */
export async function tellOwner(ctx: AuthContext, address: string, locale: Locale): Promise<void> {
  const owner = await ctx.store.users.findByEmail(requireEmail(address))
  if (owner) mailNotice(ctx, owner, 'address_taken', locale)
}

type Account = Pick<SignedUp, 'user' | 'session'> & { link: LinkToken | null }

function insertAccount(ctx: AuthContext, account: NewUser, body: object, logsIn: boolean): Promise<Account> {
  return unitOfWork(ctx, async (ctx) => {
    const user = await insertUser(ctx, account)
    await ctx.signup.onSignup?.(user, body, ctx.store)
    if (user.isActive) return { user, link: null, session: logsIn ? await finishLogin(ctx, user, ['pwd']) : null }
    // A host that may refuse links is asked first, outside of the unit.
    return { user, link: ctx.refusesEmailLink ? null : await issueLink(ctx, user.id, 'ACTIVATION'), session: null }
  })
}

/** A duplicate here is the address; one that `onSignup` meets is the host's own affair. */
async function insertUser(ctx: AuthContext, account: NewUser): Promise<UserRecord> {
  try {
    return await ctx.store.users.insert(account)
  } catch (error) {
    throw error instanceof DuplicateRecordError ? new EmailTakenError({ cause: error }) : error
  }
}

async function firstLink(ctx: AuthContext, user: UserRecord): Promise<LinkToken | typeof ACTIVATION_WITHHELD> {
  if (await refusesEmailLink(ctx, user)) return ACTIVATION_WITHHELD
  return unitOfWork(ctx, (ctx) => issueLink(ctx, user.id, 'ACTIVATION'))
}

function newAccount(ctx: AuthContext, { email, name, hashedPassword }: Pick<NewUser, 'email' | 'name' | 'hashedPassword'>): NewUser {
  const now = ctx.now()
  const isActive = ctx.settings.autoActivate
  return {
    email,
    hashedPassword,
    name,
    isActive,
    isAdmin: false,
    createdAt: now,
    updatedAt: now,
    lastLoginAt: null,
    totpSecret: null,
    totpEnabledAt: null,
    totpLastStep: null,
    emailVerifiedAt: null,
    activatedAt: isActive ? now : null,
    passwordSetAt: now,
  }
}
