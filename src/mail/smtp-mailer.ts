import { nearestName } from '../core/config/nearest-name'
import { ConfigurationError } from '../core/errors'
import type { AuthMail, Mailer } from '../core/mailer'
import { seeTroubleshooting } from '../core/troubleshooting'
import { normalizeEmail } from '../http/email-address'
import { oneLine } from './one-line'
import { smtpErrorOf, smtpRefusal } from './smtp-error'
import { type Transporter, transporterOf } from './smtp-transport'

/** Set `transport`, or `url`, or `host` with `port`, `secure` and `auth`. */
export interface SmtpMailerOptions {
  /** The sender: `no-reply@app.example`, or `App <no-reply@app.example>`. */
  from: string
  /**
   * A transporter of `nodemailer.createTransport` of any version, an SMTP URL, or nodemailer's SMTP options. A transporter keeps its own
   * settings, and the mailer never closes the transporter. `transport` excludes `url`, `host`, `port`, `secure` and `auth`.
   */
  transport?: string | object
  /** The server: `smtp://user:password@host:587` or `smtps://…`. */
  url?: string
  /** Host name of the server. */
  host?: string
  /** Default 587, or 465 if `secure` is true. */
  port?: number
  /** True: TLS from the first byte. False (default): STARTTLS, which the mailer requires unless the host is this machine. */
  secure?: boolean
  /** Credentials for the server, for example `{ user, pass }`. */
  auth?: object
}

/**
 * Returns a `Mailer` that sends by SMTP with nodemailer (an optional peer dependency). Every mail has one recipient and is marked as
 * automatic (RFC 3834). TLS is required unless the host is this machine. Every attempt has a time limit. A transporter that you pass keeps
 * its own rules for TLS and time limits.
 *
 * doorward tries again after a temporary refusal (4yz), and if the server cannot be reached (RFC 5321 section 4.2.1). doorward does not try
 * again after a permanent refusal (5yz). It also does not try again if the connection was lost when the server may already have accepted
 * the mail.
 * @throws ConfigurationError for a missing package, a missing or unusable option, and a pool that repeats mails
 */
export function smtpMailer(options: SmtpMailerOptions): Mailer {
  refuseUnknown(options)
  const from = senderOf(options.from)
  const transporter = transporterOf(transportOf(options))
  return {
    send: (mail) => send(transporter, from, mail),
    async verify() {
      await transporter.verify?.().catch((error: unknown) => {
        throw smtpErrorOf(error)
      })
    },
  }
}

const ofServer = ['url', 'host', 'port', 'secure', 'auth'] as const

function transportOf({ transport, ...options }: SmtpMailerOptions): unknown {
  const given = ofServer.filter((name) => options[name] !== undefined)
  if (transport === undefined) return Object.fromEntries(given.map((name) => [name, options[name]]))
  if (given.length === 0) return transport
  throw new ConfigurationError(`smtpMailer: transport excludes ${given.join(' and ')}; pass one or the other.`)
}

interface Address {
  name: string
  address: string
}

async function send(transporter: Transporter, from: Address, mail: AuthMail): Promise<void> {
  const message = messageOf(from, mail)
  const result = await transporter.sendMail(message).catch((error: unknown) => {
    throw smtpErrorOf(error)
  })
  const { rejected } = Object(result) as { rejected?: unknown } // nodemailer's transports set `rejected`
  if (Array.isArray(rejected) && rejected.length > 0) throw smtpRefusal('EENVELOPE')
}

/**
 * Returns the message for nodemailer. The addresses are objects and the envelope is separate, so that a name cannot add a recipient or a
 * header. The recipient's name is left out, because nobody verified the name.
 */
function messageOf(from: Address, { to, subject, text, html }: AuthMail): object {
  if (!oneAddress.test(to)) throw smtpRefusal('EENVELOPE')
  return {
    from,
    to: { name: '', address: to },
    envelope: { from: from.address, to: [to] },
    subject: oneLine(subject),
    text,
    html,
    headers: { 'Auto-Submitted': 'auto-generated', 'X-Auto-Response-Suppress': 'All' },
    disableFileAccess: true,
    disableUrlAccess: true,
  }
}

/**
 * The pattern of a recipient. The pattern accepts more addresses than our rule for new addresses, because a host's table can contain older
 * addresses. The pattern never accepts two addresses or a header.
 */
const oneAddress = /^[^\s\p{Cc}@<>()[\]\\,;:"]+@[^\s\p{Cc}@<>()[\]\\,;:"]+$/u

function senderOf(from: unknown): Address {
  const [, quoted, bare, inBrackets, alone] =
    typeof from === 'string' ? (/^(?:(?:"([^"\\<>]*)"|([^"\\<>]*?)) *<([^<>]*)>|([^<>"]*))$/.exec(from.trim()) ?? []) : []
  const address = (inBrackets ?? alone)?.trim()
  const name = quoted ?? bare ?? ''
  if (address === undefined || normalizeEmail(address) === null || oneLine(name) !== name) {
    throw new ConfigurationError("smtpMailer: from must be one address, such as 'no-reply@app.example' or 'App <no-reply@app.example>'.")
  }
  return { name, address }
}

function refuseUnknown(options: unknown): void {
  if (typeof options !== 'object' || options === null)
    throw new ConfigurationError('smtpMailer() needs options: { from, transport } or { from, url }.')
  const known = ['from', 'transport', ...ofServer]
  const unknown = Object.keys(options).find((name) => !known.includes(name))
  if (unknown === undefined) return
  throw new ConfigurationError(
    `smtpMailer: unknown option ${JSON.stringify(unknown.slice(0, 64))}; the nearest known one is ${nearestName(unknown, known)}. ${seeTroubleshooting('unknown-names')}`,
  )
}
