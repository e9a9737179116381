import { ConfigurationError } from '../core/errors'
import { seeTroubleshooting } from '../core/troubleshooting'
import { whenInstalled } from '../passwords/optional-package'

export interface Transporter {
  sendMail(message: object): Promise<unknown>
  verify?(): Promise<unknown>
  close?(): void
}

/** In milliseconds, below the 120 s of an attempt. After a silence of `socketTimeout`, the server may have accepted the mail. */
const bounds = { dnsTimeout: 10_000, connectionTimeout: 10_000, greetingTimeout: 10_000, socketTimeout: 90_000 }

/** A mail must not make nodemailer read a file or fetch a URL. */
const closed = { disableFileAccess: true, disableUrlAccess: true }

/** @throws ConfigurationError */
export function transporterOf(transport: unknown): Transporter {
  if (!isTransporter(transport)) return pooled(readOptions(transport))
  refuseRequeues(transport)
  return transport
}

/** Closes an idle pool: a dropped connection may lose a mail, and idle ones keep the process alive. */
function pooled(options: SmtpOptions): Transporter {
  let pool: Transporter | null = create(options)
  let inProgress = 0

  async function use(work: (pool: Transporter) => Promise<unknown> | undefined): Promise<unknown> {
    pool ??= create(options)
    inProgress++
    try {
      return await work(pool)
    } finally {
      inProgress--
      setImmediate(closeIfIdle) // the next mail begins before that
    }
  }

  function closeIfIdle(): void {
    if (inProgress > 0) return
    pool?.close?.()
    pool = null
  }

  return { sendMail: (message) => use((pool) => pool.sendMail(message)), verify: () => use((pool) => pool.verify?.()) }
}

function isTransporter(transport: unknown): transport is Transporter {
  return typeof (Object(transport) as { sendMail?: unknown }).sendMail === 'function' // a transporter is recognized by its method
}

interface SmtpOptions {
  url?: unknown
  host?: unknown
  service?: unknown
  secure?: unknown
  [option: string]: unknown
}

/** For other ways to send mail, the host must create the transporter. */
function readOptions(transport: unknown): SmtpOptions {
  if (typeof transport === 'string') return readOptions({ url: transport })
  if (typeof transport !== 'object' || transport === null || Array.isArray(transport)) throw new ConfigurationError(wanted)
  const { url, ...given } = transport as SmtpOptions // an object; the code below checks its members
  const options: SmtpOptions = url === undefined ? given : { ...given, ...readSmtpUrl(url) }
  if (['sendmail', 'streamTransport', 'jsonTransport', 'SES'].some((name) => name in options)) throw new ConfigurationError(wanted)
  // Without a host, nodemailer would connect to this machine, for example if a variable is missing.
  if (typeof options.host !== 'string' && typeof options.service !== 'string') throw new ConfigurationError(wanted)
  return { ...bounds, ...(options.secure === true ? {} : startTls(options)), maxRequeues: 0, ...options, ...closed }
}

/** Except for this machine, where a server often has a self-signed certificate, and even plain text would be safe. */
function startTls({ host, service }: SmtpOptions): Partial<SmtpOptions> {
  // A nodemailer service sets its own host and ignores `host`.
  return service === undefined && isLoopback(host) ? { tls: { rejectUnauthorized: false } } : { requireTLS: true }
}

const wanted =
  'smtpMailer: pass url (smtp:// or smtps://), host, or transport (a URL, SMTP options with a host, or what nodemailer.createTransport() made).'

/** nodemailer before 10 ignores every option beside a URL, even `requireTLS`. */
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

/** As nodemailer does: numbers and booleans become values, and `tls.` begins the name of a TLS option. */
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
  const nodemailer = whenInstalled('nodemailer', () => require('nodemailer') as Nodemailer) // according to nodemailer's types
  if (!nodemailer)
    throw new ConfigurationError(
      `smtpMailer needs the package nodemailer; run \`npm install nodemailer\`. ${seeTroubleshooting('a-package-is-missing')}`,
    )
  const transporter = nodemailer.createTransport({ pool: true, ...options })
  const mayPool = options['pool'] !== undefined || !ignoresMaxRequeues(factsOf(transporter).version)
  if (!mayPool) return nodemailer.createTransport(options)
  refuseRequeues(transporter)
  return transporter
}

interface Nodemailer {
  createTransport(options: object): Transporter
}

/** Only nodemailer's own transporters have these. */
interface PoolFacts {
  options?: { pool?: unknown; maxRequeues?: unknown }
  version?: unknown
}

/** After a lost connection such a pool sends the mail again, although the server may already have it. */
function refuseRequeues(transporter: Transporter): void {
  const { options, version } = factsOf(transporter)
  if (!options?.pool) return
  if (ignoresMaxRequeues(version))
    throw new ConfigurationError(`smtpMailer: the pool of nodemailer before 6.4.3 ${repeats}; install a later one, or leave out pool.`)
  if (options.maxRequeues !== 0) throw new ConfigurationError(`smtpMailer: a pooled transport ${repeats}; set maxRequeues: 0.`)
}

function factsOf(transporter: Transporter): PoolFacts {
  return Object((transporter as { transporter?: unknown }).transporter) as PoolFacts // nodemailer's own, or undefined
}

const repeats = 'repeats mails whose connection was lost, which sends some of them twice'

/** Reads a version such as `6.4.2[client:6.4.2]`. */
function ignoresMaxRequeues(version: unknown): boolean {
  const [, major, minor, patch] = (typeof version === 'string' ? /^(\d+)\.(\d+)\.(\d+)/.exec(version) : null) ?? []
  const [least, given] = [[6, 4, 3], [major, minor, patch].map(Number)]
  const place = least.findIndex((part, index) => part !== given[index])
  return place !== -1 && (given[place] ?? 0) < (least[place] ?? 0)
}
