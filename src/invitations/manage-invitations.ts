import { mailLink, mayMail } from '../accounts/email-links/send-mail'
import type { AuthContext } from '../context'
import { ConflictError, NotFoundError, TooManyRequestsError, ValidationError } from '../core/errors'
import { hashOpaqueToken, newOpaqueToken } from '../core/opaque-token'
import { requireEmail } from '../http/email-address'
import type { Locale } from '../http/locale'
import { countAttempt } from '../rate-limits/rate-limiter'
import { after } from '../sessions/find-session'
import type { InvitationRecord } from '../store/auth-store'
import { isOpen, requireInvitations } from './invitation'

export const mostUses = 10_000
export const mostDays = 365
/** In bytes of JSON. */
export const mostData = 4_096
const defaultDays = 14
const daySeconds = 86_400

/** An invitation without its token. */
export interface Invitation {
  id: string
  /** Only an account with this address uses the invitation. Null: any account. */
  email: string | null
  /** What your hook `onInvitationAccepted` gets. The invited person never sees it. */
  data: unknown
  usesLeft: number
  expiresAt: Date
  /** The administrator. Null: your code. */
  createdBy: string | null
  createdAt: Date
  /** Null: not revoked. */
  revokedAt: Date | null
}

export interface NewInvitation {
  /** The address that may use the invitation. Default: any address. */
  email?: string | null | undefined
  /** Any JSON of at most 4,096 bytes, for your hook `onInvitationAccepted`. Default null. */
  data?: unknown
  /** How many accounts may use it: 1 to 10,000. With `email` only 1. Default 1. */
  uses?: number | undefined
  /** 1 to 365. Default 14. */
  expiresInDays?: number | undefined
  /** True: mails the invitation. Its token then also verifies the address. Default: true if there are an address and a mailer. */
  send?: boolean | undefined
  /** Language of the mail. Default: `defaultLocale`. */
  locale?: Locale | undefined
}

export interface CreatedInvitation extends Invitation {
  /** Shown once. Null: the token was mailed. */
  token: string | null
  url: string | null
}

/** An administrator mails at most so many invitations. */
const mailsOfAdmin = { attempts: 500, windowSeconds: daySeconds }

interface Creation {
  /** The administrator. Null: code of the host. */
  readonly by: string | null
  /** False: no limit counts the mail. */
  readonly isLimited: boolean
}

/** @throws ValidationError, TooManyRequestsError */
export async function createInvitation(ctx: AuthContext, input: NewInvitation, { by, isLimited }: Creation): Promise<CreatedInvitation> {
  const { invitations } = requireInvitations(ctx)
  const { email, data, usesLeft, days, send } = read(ctx, input)
  if (send && isLimited) await countMail(ctx, by)
  const now = ctx.now()
  const token = newOpaqueToken()
  const invitation = await invitations.insert({
    tokenHash: hashOpaqueToken(token),
    email,
    data,
    usesLeft,
    isMailed: send,
    createdBy: by,
    createdAt: now,
    expiresAt: after(now, days * daySeconds),
    revokedAt: null,
  })
  ctx.events.emit('invitation.created', { invitationId: invitation.id, ...(by !== null && { actorId: by }) })
  if (send) await mailInvitation(ctx, invitation, token, input.locale)
  return { ...toInvitation(invitation), token: send ? null : token, url: send ? null : urlOf(ctx, token) }
}

function read(ctx: AuthContext, { email: typed = null, data = null, uses = 1, expiresInDays = defaultDays, send }: NewInvitation) {
  const email = typed === null ? null : requireEmail(typed)
  const isSent = send ?? (email !== null && ctx.mailQueue !== null)
  const text = data === null ? null : textOf(data)
  if (!isWithin(uses, email === null ? mostUses : 1)) throw refusal('uses', 'number.max')
  if (!isWithin(expiresInDays, mostDays)) throw refusal('expires_in_days', 'number.max')
  if (isSent && (email === null || ctx.mailQueue === null)) throw refusal('send', email === null ? 'without_email' : 'without_mailer')
  return { email, data: text, usesLeft: uses, days: expiresInDays, send: isSent }
}

function isWithin(value: number, most: number): boolean {
  return Number.isInteger(value) && value >= 1 && value <= most
}

/** In JSON: an escape of U+0000, which JSON columns of PostgreSQL refuse, and no text of a backslash and `u0000`. */
const zeroCharacter = /(?<!\\)(?:\\\\)*\\u0000/

/** `undefined` for a value that is no JSON, such as a function. */
function textOf(data: unknown): string {
  let text: string | undefined
  try {
    text = JSON.stringify(data)
  } catch {
    text = undefined // a BigInt, or an object that contains itself
  }
  if (text === undefined || Buffer.byteLength(text) > mostData || zeroCharacter.test(text)) throw refusal('data', 'unstorable')
  return text
}

function refusal(path: string, rule: string): ValidationError {
  return new ValidationError({ details: { errors: [{ path, rule }] } })
}

async function countMail(ctx: AuthContext, by: string | null): Promise<void> {
  if (by === null) return
  await countAttempt(ctx, [{ name: 'invitation:mails', subject: by, rateLimit: mailsOfAdmin }], { Exhausted: TooManyRequestsError })
}

/** Above the address's limit of links, no mail is sent. `resendInvitation` can send it later. */
async function mailInvitation(
  ctx: AuthContext,
  { email, expiresAt, createdBy }: InvitationRecord,
  token: string,
  locale: Locale = ctx.settings.defaultLocale,
): Promise<void> {
  if (email === null || !(await mayMail(ctx, { id: null, email }, 'INVITATION'))) return
  const inviter = await inviterOf(ctx, createdBy)
  const items = inviter === null ? [] : [ctx.texts.say(locale, 'mail.invited_by', { name: inviter })]
  const recipient = { id: null, email, name: null, emailVerifiedAt: null }
  mailLink(ctx, recipient, 'invitation', { url: urlOf(ctx, token), expiresAt }, locale, { items })
}

/** Only the name. Null: no administrator, or one without a name. */
export async function inviterOf(ctx: AuthContext, createdBy: string | null): Promise<string | null> {
  const inviter = createdBy === null ? null : await ctx.store.users.find(createdBy)
  return inviter?.name || null
}

/** A page of the host, or ours. Never uses the Host header. */
function urlOf({ settings, prefix }: AuthContext, token: string): string {
  const { invitationUrlTemplate: own } = settings
  return own === null ? `${settings.publicUrl}${prefix}/invitations/${token}` : own.replace('{token}', () => token)
}

export interface InvitationListQuery {
  /** The `nextCursor` of the previous page. */
  cursor?: string | undefined
  /** 1 to 100. Default 50. */
  limit?: number | undefined
}

export interface InvitationList {
  items: Invitation[]
  /** Null: the last page. */
  nextCursor: string | null
}

/** Newest first. @throws ValidationError (cursor, limit) */
export async function listInvitations(ctx: AuthContext, { cursor, limit = 50 }: InvitationListQuery = {}): Promise<InvitationList> {
  const { invitations } = requireInvitations(ctx)
  if (!isWithin(limit, 100)) throw refusal('limit', 'number.between')
  const position = cursor === undefined ? null : readCursor(cursor)
  const found = await invitations.list({ after: position, limit: limit + 1 }) // one more shows whether there is a next page
  const items = found.slice(0, limit)
  const last = items.at(-1)
  return { items: items.map(toInvitation), nextCursor: last && found.length > limit ? cursorOf(last) : null }
}

function cursorOf({ createdAt, id }: InvitationRecord): string {
  return Buffer.from(JSON.stringify([createdAt.getTime(), id])).toString('base64url')
}

/** PostgreSQL reads no year of five digits. */
const firstUnstorable = Date.UTC(10_000, 0)

function readCursor(cursor: string): { createdAt: Date; id: string } {
  try {
    const [at, id, ...rest]: unknown[] = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'))
    const isInstant = Number.isInteger(at) && Number(at) >= 0 && Number(at) < firstUnstorable
    if (isInstant && typeof id === 'string' && rest.length === 0) return { createdAt: new Date(Number(at)), id }
  } catch {
    // refused below
  }
  throw refusal('cursor', 'any.invalid')
}

/** A second call changes nothing. @throws NotFoundError */
export async function revokeInvitation(ctx: AuthContext, id: string, by: string | null = null): Promise<void> {
  const { invitations } = requireInvitations(ctx)
  if (await invitations.revoke(id, ctx.now())) {
    ctx.events.emit('invitation.revoked', { invitationId: id, ...(by !== null && { actorId: by }) })
    return
  }
  if (!(await invitations.find({ id }))) throw new NotFoundError()
}

/** Mails a new token. The old one ends. @throws NotFoundError, ConflictError unless the invitation was mailed and is open, TooManyRequestsError */
export async function resendInvitation(
  ctx: AuthContext,
  id: string,
  { by = null, locale }: { by?: string | null; locale?: Locale | undefined } = {},
): Promise<void> {
  const { invitations } = requireInvitations(ctx)
  const invitation = await invitations.find({ id })
  if (!invitation) throw new NotFoundError()
  const now = ctx.now()
  if (!invitation.isMailed || !ctx.mailQueue || !isOpen(invitation, now)) throw new ConflictError()
  await countMail(ctx, by)
  const token = newOpaqueToken()
  if (!(await invitations.replaceToken(id, hashOpaqueToken(token), now))) throw new ConflictError() // used or revoked meanwhile
  await mailInvitation(ctx, invitation, token, locale)
}

export function toInvitation({ id, email, data, usesLeft, expiresAt, createdBy, createdAt, revokedAt }: InvitationRecord): Invitation {
  return { id, email, data: data === null ? null : JSON.parse(data), usesLeft, expiresAt, createdBy, createdAt, revokedAt }
}
