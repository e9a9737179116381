import { type Terminal, UsageError } from '../terminal'
import { type App, type Client, clients, providerClientOf } from './read-knexfile'

/** They need only a client id and a client secret. Each value is the class of the provider's client. */
const classes = {
  google: 'GoogleClient',
  github: 'GitHubClient',
  microsoft: 'MicrosoftClient',
  facebook: 'FacebookClient',
  discord: 'DiscordClient',
  gitlab: 'GitLabClient',
  linkedin: 'LinkedInClient',
  slack: 'SlackClient',
  twitch: 'TwitchClient',
} as const

type ProviderName = keyof typeof classes

export interface ProviderCode {
  readonly name: ProviderName
  readonly className: string
  readonly clientId: string
  readonly clientSecret: string
}

/** `providersFromEnv()` reads the same environment variables. */
export function codeOf(name: ProviderName): ProviderCode {
  const prefix = `OAUTH_${name.toUpperCase()}_CLIENT`
  return { name, className: classes[name], clientId: `${prefix}_ID`, clientSecret: `${prefix}_SECRET` }
}

const providerNames = Object.keys(classes) as ProviderName[] // a record has exactly these keys

export interface InitFlags {
  readonly delivery?: string | undefined
  readonly client?: string | undefined
  readonly providers?: string | undefined
  readonly pages?: string | undefined
  readonly yes?: boolean | undefined
}

const deliveries = ['session', 'cookie', 'bearer', 'both'] as const

/** `init` cannot read these from the app's files. */
export interface Choices {
  readonly delivery: (typeof deliveries)[number]
  readonly client: Client
  readonly providers: readonly ProviderName[]
  readonly hasPages: boolean
}

interface Question<Value> {
  readonly flag: keyof InitFlags & string
  readonly text: string
  readonly allowed: string
  /** For the Enter key and for --yes. */
  readonly usual: string
  readonly read: (answer: string) => Value | null
}

/** From the flag, the app, or a person. @throws UsageError for an invalid answer, or a missing one without a terminal */
export async function choose(app: App, flags: InitFlags, terminal: Terminal | null): Promise<Choices> {
  const seen = app.knexfile?.client ?? soleDriver(app)
  const takesPages = flags.delivery !== 'bearer'
  if (!terminal && !flags.yes) {
    const questions: (keyof InitFlags)[] = [
      'delivery',
      ...(seen ? [] : (['client'] as const)),
      'providers',
      ...(takesPages ? (['pages'] as const) : []),
    ]
    const missing = questions.filter((flag) => flags[flag] === undefined).map((flag) => `--${flag}`)
    if (missing.length > 0)
      throw new UsageError(`Without a terminal nothing is asked. Give ${missing.join(', ')}, or --yes for the defaults.`)
  }
  const answer = answers(flags, terminal)
  const delivery = await answer(deliveryQuestion)
  const client = flags.client === undefined && seen ? seen : await answer(clientQuestion)
  const providers = await answer(providersQuestion)
  const hasPages = delivery === 'bearer' && flags.pages === undefined ? false : await answer(pagesQuestion)
  if (hasPages && delivery === 'bearer')
    throw new UsageError('--pages yes needs --delivery session, cookie or both: a page signs people in by cookies.')
  if (app.knexfile && client !== app.knexfile.client)
    throw new UsageError(`--client ${client} is not the client of ${app.knexfile.path}, which is ${app.knexfile.client}.`)
  return { delivery, client, providers, hasPages }
}

function soleDriver(app: App): Client | null {
  const [client, ...others] = clients.filter((name) => app.installed(name))
  return others.length === 0 ? (client ?? null) : null
}

const deliveryQuestion: Question<Choices['delivery']> = {
  flag: 'delivery',
  text: 'What does a login give: one session cookie, two tokens in cookies, tokens in the answer (bearer), or both of these?',
  allowed: deliveries.join(', '),
  usual: 'session',
  read: (answer) => deliveries.find((delivery) => delivery === answer) ?? null,
}

const clientQuestion: Question<Client> = {
  flag: 'client',
  text: 'Which database driver?',
  allowed: clients.join(', '),
  usual: 'better-sqlite3',
  read: providerClientOf,
}

const providersQuestion: Question<readonly ProviderName[]> = {
  flag: 'providers',
  text: 'Which providers may people sign in with, with commas between?',
  allowed: `none, ${providerNames.join(', ')}`,
  usual: 'none',
  read(answer) {
    if (answer === 'none') return []
    const names = answer.split(/[\s,]+/).map((name) => providerNames.find((known) => known === name))
    return names.every((name) => name !== undefined) ? [...new Set(names)] : null
  },
}

const pagesQuestion: Question<boolean> = {
  flag: 'pages',
  text: "Shall doorward's own pages sign people up and in?",
  allowed: 'yes, no',
  usual: 'yes',
  read: (answer) => (['yes', 'y'].includes(answer) ? true : ['no', 'n'].includes(answer) ? false : null),
}

function answers(flags: InitFlags, terminal: Terminal | null) {
  return async <Value>({ flag, text, allowed, usual, read }: Question<Value>): Promise<Value> => {
    const given = flags[flag]
    const value = given === undefined ? null : read(String(given).trim().toLowerCase())
    if (value !== null) return value
    if (given !== undefined) throw new UsageError(`--${flag} takes ${allowed}.`)
    let question = `${text} (${allowed}) [${usual}] `
    while (terminal && !flags.yes) {
      const value = read((await terminal.ask(question)).trim().toLowerCase() || usual)
      if (value !== null) return value
      question = `One of: ${allowed} [${usual}] `
    }
    return read(usual) as Value // every question accepts its default
  }
}
