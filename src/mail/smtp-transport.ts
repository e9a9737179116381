import { ConfigurationError } from '../errors'
import { whenInstalled } from '../passwords/optional-package'
import { seeTroubleshooting } from '../troubleshooting'

/** What we use of a nodemailer transporter. */
export interface Transporter {
  sendMail(message: object): Promise<unknown>
  /** Greets the server, and signs in. */
  verify?(): Promise<unknown>
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
  const { url, ...given } = transport as SmtpOptions // an object, whose members are looked at below
  const options: SmtpOptions = url === undefined ? given : { ...given, ...readSmtpUrl(url) }
  if (['sendmail', 'streamTransport', 'jsonTransport', 'SES'].some((name) => name in options)) throw new ConfigurationError(wanted)
  // nodemailer would take a host that is not there, a forgotten variable say, for this machine.
  if (typeof options.host !== 'string' && typeof options.service !== 'string') throw new ConfigurationError(wanted)
  return { ...bounds, ...(options.secure === true ? {} : startTls(options)), maxRequeues: 0, ...options, ...closed }
}

/** To this machine clear text would do, so a certificate nobody vouches for does too: local servers come with such a one. */
function startTls({ host, service }: SmtpOptions): Partial<SmtpOptions> {
  // A service brings a host of its own, whatever `host` says.
  return service === undefined && isLoopback(host) ? { tls: { rejectUnauthorized: false } } : { requireTLS: true }
}

const wanted =
  'smtpMailer: pass url (smtp:// or smtps://), host, or transport (a URL, SMTP options with a host, or what nodemailer.createTransport() made).'

/** Read here, because nodemailer before 10 ignores every option beside a URL: `requireTLS` too. */
function readSmtpUrl(text: unknown): SmtpOptions {
  const url = typeof text === 'string' && URL.canParse(text) ? new URL(text) : null
  if (!url || !/^smtps?:$/.test(url.protocol) || url.hostname === '') throw new ConfigurationError(wanted)
  return {
    ...queryOf(url),
    host: url.hostname.replace(/^\[|\]$/g, ''),
    secure: url.protocol === 'smtps:',
    ...(url.port !== '' && { port: Number(url.port) }),
    ...(url.username !== '' && { auth: { user: decoded(url.username), pass: decoded(url.password) } }),
  }
}

/** As nodemailer reads it: numbers and booleans are meant as such, and `tls.` stands before what belongs to TLS. */
function queryOf({ searchParams }: URL): object {
  const options = Object.fromEntries([...searchParams].map(([name, text]) => [name, plainValue(text)]))
  const tls = Object.entries(options).filter(([name]) => name.startsWith('tls.'))
  const others = Object.entries(options).filter(([name]) => !name.includes('.'))
  return Object.fromEntries([
    ...others,
    ...(tls.length > 0 ? [['tls', Object.fromEntries(tls.map(([name, value]) => [name.slice(4), value]))]] : []),
  ])
}

function plainValue(text: string): unknown {
  if (text === 'true' || text === 'false') return text === 'true'
  return /^\d+$/.test(text) ? Number(text) : text
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new ConfigurationError('smtpMailer: the user name or the password in the URL is not percent-encoded; write % as %25.')
  }
}

function isLoopback(host: unknown): boolean {
  return typeof host === 'string' && /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/i.test(host)
}

function create(options: SmtpOptions): Transporter {
  const nodemailer = whenInstalled('nodemailer', () => require('nodemailer') as Nodemailer) // as its types say
  if (!nodemailer)
    throw new ConfigurationError(
      `smtpMailer needs the package nodemailer; run \`npm install nodemailer\`. ${seeTroubleshooting('a-package-is-missing')}`,
    )
  return nodemailer.createTransport(options)
}

interface Nodemailer {
  createTransport(options: object): Transporter
}

/** What nodemailer shows of a transporter that it made; one of another kind has none of it. */
interface PoolFacts {
  options?: { pool?: unknown; maxRequeues?: unknown }
  version?: unknown
}

/** A pool sends a mail again by itself when its connection is lost, also one the server has already. */
function refuseRequeues(transporter: Transporter): void {
  const { options, version } = Object((transporter as { transporter?: unknown }).transporter) as PoolFacts // nodemailer's, where it is one
  if (!options?.pool) return
  if (ignoresMaxRequeues(version))
    throw new ConfigurationError(`smtpMailer: the pool of nodemailer before 6.4.3 ${repeats}; install a later one, or leave out pool.`)
  if (options.maxRequeues !== 0) throw new ConfigurationError(`smtpMailer: a pooled transport ${repeats}; set maxRequeues: 0.`)
}

const repeats = 'repeats mails whose connection was lost, which sends some of them twice'

/** Such as `6.4.2[client:6.4.2]`. */
function ignoresMaxRequeues(version: unknown): boolean {
  const [, major, minor, patch] = (typeof version === 'string' ? /^(\d+)\.(\d+)\.(\d+)/.exec(version) : null) ?? []
  const [least, given] = [[6, 4, 3], [major, minor, patch].map(Number)]
  const place = least.findIndex((part, index) => part !== given[index])
  return place !== -1 && (given[place] ?? 0) < (least[place] ?? 0)
}
