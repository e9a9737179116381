import { ConfigurationError } from '../errors'
import { whenInstalled } from '../passwords/optional-package'

/** What we use of a nodemailer transporter. */
export interface Transporter {
  sendMail(message: object): Promise<unknown>
}

/**
 * Shorter than the 120 s one attempt may take, so that what went wrong is known before that. The last is how long the
 * server may be silent, and it may have the mail by then.
 */
const bounds = { dnsTimeout: 10_000, connectionTimeout: 10_000, greetingTimeout: 10_000, socketTimeout: 90_000 }

/** No file is read and no URL fetched, whatever stands in a mail. */
const closed = { disableFileAccess: true, disableUrlAccess: true }

/** @throws ConfigurationError */
export function transporterOf(transport: unknown): Transporter {
  const transporter = isTransporter(transport) ? transport : create(readOptions(transport))
  refuseRequeues(transporter)
  return transporter
}

function isTransporter(transport: unknown): transport is Transporter {
  return typeof (Object(transport) as { sendMail?: unknown }).sendMail === 'function' // told by its one method
}

interface SmtpOptions {
  url?: unknown
  host?: unknown
  service?: unknown
  secure?: unknown
  [option: string]: unknown
}

/** What nodemailer may be given here; another way of sending is a transporter the host makes on purpose. */
function readOptions(transport: unknown): SmtpOptions {
  if (typeof transport === 'string') return readOptions({ url: transport })
  if (typeof transport !== 'object' || transport === null || Array.isArray(transport)) throw new ConfigurationError(wanted)
  const options: SmtpOptions = { ...transport }
  if (['sendmail', 'streamTransport', 'jsonTransport', 'SES'].some((name) => name in options)) throw new ConfigurationError(wanted)
  const url = options.url === undefined ? null : smtpUrl(options.url)
  const host = url ? hostOf(url) : options.host
  // nodemailer would take a host that is not there, a forgotten variable say, for this machine.
  if (typeof host !== 'string' && typeof options.service !== 'string') throw new ConfigurationError(wanted)
  const secure = url?.protocol === 'smtps:' || options.secure === true
  return { ...bounds, ...(secure ? {} : startTls(host)), maxRequeues: 0, ...options, ...closed }
}

/** To this machine clear text would do, so a certificate nobody vouches for does too: local servers come with such a one. */
function startTls(host: unknown): Partial<SmtpOptions> {
  return isLoopback(host) ? { tls: { rejectUnauthorized: false } } : { requireTLS: true }
}

const wanted =
  'smtpMailer: transport must be an smtp:// or smtps:// URL, SMTP options with a host, or a transporter made by nodemailer.createTransport().'

function smtpUrl(text: unknown): URL {
  const url = typeof text === 'string' && URL.canParse(text) ? new URL(text) : null
  if (!url || !/^smtps?:$/.test(url.protocol) || url.hostname === '') throw new ConfigurationError(wanted)
  return url
}

function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '')
}

function isLoopback(host: unknown): boolean {
  return typeof host === 'string' && /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/i.test(host)
}

function create(options: SmtpOptions): Transporter {
  const nodemailer = whenInstalled('nodemailer', () => require('nodemailer') as Nodemailer) // as its types say
  if (!nodemailer) throw new ConfigurationError('smtpMailer needs the package nodemailer; run `npm install nodemailer`.')
  return nodemailer.createTransport(options)
}

interface Nodemailer {
  createTransport(options: object): Transporter
}

/** A pool sends a mail again by itself when its connection is lost, also one the server has already. */
function refuseRequeues(transporter: Transporter): void {
  const { options } = Object((transporter as { transporter?: unknown }).transporter) as { options?: { maxRequeues?: unknown } } // nodemailer's, where it is one
  if (typeof options?.maxRequeues !== 'number' || options.maxRequeues === 0) return
  throw new ConfigurationError(
    'smtpMailer: a pooled transport repeats mails whose connection was lost, which sends some of them twice; set maxRequeues: 0.',
  )
}
