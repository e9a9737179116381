import { existsSync, readdirSync } from 'node:fs'
import { join, posix } from 'node:path'
import { authModuleIn, type EnvFileFlags, namedInPackage, readEnvFile } from '../auth-module'
import { type CommandAnswer, CommandRefusal, type Surroundings } from '../terminal'
import { authFile, envExample, migrationFile, type NewFile, needsDatabaseUrl, type Plan, usesRequire, writeFiles } from './auth-file'
import { type Choices, choose, type InitFlags } from './choices'
import { type App, type Knexfile, lookAtApp } from './read-knexfile'
import { type FoundUsersTable, findUsersTable, type NotLooked } from './users-table'

interface InitCommandFlags extends InitFlags, EnvFileFlags {
  readonly 'hash-column'?: string | undefined
  readonly print?: boolean | undefined
}

/** A migration only beside a knexfile. All files or none, and overwrites none. @throws CommandRefusal `FILE_EXISTS` with the name */
export async function init(flags: InitCommandFlags, surroundings: Surroundings): Promise<CommandAnswer> {
  readEnvFile(surroundings, flags)
  const app = await lookAtApp(surroundings)
  const obstacle = obstacleIn(app)
  if (obstacle !== null && !flags.print) throw new CommandRefusal('FILE_EXISTS', obstacle)
  const choices = await choose(app, flags, surroundings.terminal)
  const found = app.knexfile && (await lookForUsers(app, app.knexfile, { flags, terminal: surroundings.terminal, choices }))
  const users = found && 'table' in found ? found : null
  const plan: Plan = { app, choices, users }
  const example = { path: '.env.example', text: envExample(plan) }
  const keepsExample = existsSync(join(app.folder, example.path))
  const files: NewFile[] = [
    { path: app.authFile, text: authFile(plan) },
    ...(app.knexfile ? [migrationFile(plan, app.knexfile, new Date())] : []),
    ...(keepsExample ? [] : [example]),
  ]
  if (!flags.print) writeFiles(app.folder, files)
  const steps = nextSteps(app, plan, surroundings.env)
  const changes = users?.findings.map(({ message, sql }) => ({ message, sql })) ?? []
  const notes = [
    ...(obstacle === null ? [] : [obstacle]),
    ...(found && 'why' in found ? [`No users table was looked for: ${found.why}.`] : []),
  ]
  return {
    json: {
      ...(flags.print ? { files } : { written: files.map(({ path }) => path) }),
      ...(keepsExample && { env_example: example.text }),
      ...steps,
      users_table: users && { table: users.table, changes },
    },
    text: [
      ...(flags.print
        ? files.map(({ path, text }) => `--- ${path}\n${text.trimEnd()}`)
        : [`Written: ${files.map(({ path }) => path).join(', ')}`]),
      ...(keepsExample ? [`.env.example is there and stays. It would have been:\n${indented(example.text)}`] : []),
      ...(users ? [aboutTable(users.table, changes)] : []),
      ...aboutSteps(app, steps),
    ].join('\n\n'),
    ...(notes.length > 0 && { note: notes.join('\n') }),
    isNo: obstacle !== null,
  }
}

interface Asking {
  readonly flags: InitCommandFlags
  readonly terminal: Surroundings['terminal']
  readonly choices: Choices
}

/** A person names an unknown hash column. @throws CommandRefusal `HASH_COLUMN` with the columns, if nobody can be asked */
async function lookForUsers(
  app: App,
  knexfile: Knexfile,
  { flags, terminal, choices }: Asking,
): Promise<FoundUsersTable | NotLooked | null> {
  const hasProviders = choices.providers.length > 0
  const found = await findUsersTable(app, knexfile, { hasProviders, hashColumn: flags['hash-column'] ?? null })
  if (!found || 'why' in found || found.unknownHash === null) return found
  const columns = found.unknownHash.join(', ')
  if (!terminal || flags.yes)
    throw new CommandRefusal(
      'HASH_COLUMN',
      `No column of ${found.table} is known to hold the password hash. Its columns are ${columns}. Name one with --hash-column, or --hash-column new if accounts have no password yet.`,
    )
  const question = `Which column of ${found.table} holds the password hash: ${columns}? Or new, if accounts have no password yet: `
  return findUsersTable(app, knexfile, { hasProviders, hashColumn: (await terminal.ask(question)).trim() })
}

/** Overwrites no file. Also writes nothing beside an auth module in another place, because the command would then load that one. */
function obstacleIn({ folder, authFile, knexfile }: App): string | null {
  const named = namedInPackage(folder)
  const module = existsSync(join(folder, authFile)) ? authFile : authModuleIn(folder)
  if (module === null && named !== undefined)
    return `package.json names ${named} as the auth module, which is not there; take the entry "doorward" out, and init writes ${authFile}.`
  const taken = module ?? (knexfile && migrationIn(folder, knexfile.migrations))
  return (
    taken &&
    `${taken} is there, so init wrote nothing, because it never overwrites a file. With --print, init prints the text that it would write.`
  )
}

function migrationIn(folder: string, directory: string): string | null {
  const names = existsSync(join(folder, directory)) ? readdirSync(join(folder, directory)) : []
  const found = names.find((name) => /_doorward\.[cm]?[jt]s$/.test(name))
  return found === undefined ? null : posix.join(directory, found)
}

function aboutTable(table: string, changes: readonly { message: string; sql: string | null }[]): string {
  if (changes.length === 0) return `Your table ${table} is used as it is.`
  const lines = changes.map(({ message, sql }) => (sql === null ? `-- ${message}` : `${sql};`))
  return `Your table ${table} is used. Change it first:\n${indented(lines.join('\n'))}`
}

function aboutSteps({ entry }: App, { install, lines, start }: NextSteps): string[] {
  return [
    ...(install.length > 0 ? [`Install:\n${indented(install.join('\n'))}`] : []),
    `Add to ${entry ?? 'your app'}:\n${indented(lines.join('\n'))}`,
    `Start on your machine:\n${indented(start.join('\n'))}`,
  ]
}

function indented(text: string): string {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => (line === '' ? '' : `  ${line}`))
    .join('\n')
}

interface NextSteps {
  readonly install: readonly string[]
  readonly lines: readonly string[]
  readonly start: readonly string[]
}

type Env = Readonly<Record<string, string | undefined>>

/** @param env the environment of the command, with the variables of the folder's `.env` */
function nextSteps(app: App, plan: Plan, env: Env): NextSteps {
  return { install: install(app, plan), lines: lines(app), start: start(app, plan, env) }
}

/** The app needs nodemailer only in production. Installing it now makes sure that production has it. */
function install(app: App, { choices }: Plan): string[] {
  const missing = (names: readonly string[]) => names.filter((name) => !app.installed(name))
  const packages = missing(['doorward', 'express', 'knex', choices.client, 'nodemailer'])
  const major = app.installed('express')?.split('.', 1)[0]
  const types = missing(['typescript', 'tsx', '@types/node', '@types/express', ...typesOfPool(app, choices)])
  const typesOf = (name: string) => (name === '@types/express' && major === '4' ? `${name}@4` : name)
  return [
    ...(packages.length > 0 ? [`npm install ${packages.join(' ')}`] : []),
    ...(app.language === 'TypeScript' && types.length > 0 ? [`npm install --save-dev ${types.map(typesOf).join(' ')}`] : []),
  ]
}

/** The module makes the pool itself, and `mysql2` has its types. */
function typesOfPool({ library }: App, { client }: Choices): string[] {
  return library && client !== 'mysql2' ? [`@types/${client}`] : []
}

function lines(app: App): string[] {
  const from = app.entry === null ? '.' : posix.dirname(app.entry)
  const relative = posix.relative(from, app.authFile)
  const path = relative.startsWith('.') ? relative : `./${relative}`
  const bare = path.replace(/\.[^./]+$/, '')
  const imported = app.modules === 'CommonJS' ? bare : app.language === 'TypeScript' ? `${bare}.js` : path
  return [usesRequire({ app }) ? `const { auth } = require('${imported}')` : `import { auth } from '${imported}'`, "app.use('/auth', auth)"]
}

function start(app: App, plan: Plan, env: Env): string[] {
  const runner = app.language === 'TypeScript' ? 'npx tsx' : 'node'
  return [
    ...variables(app, plan, env),
    app.knexfile ? migrateByKnex(app.knexfile.path) : 'npx --no-install doorward migrate up',
    ...(app.entry === null ? [] : [`${runner} --env-file=.env ${app.entry}`]),
  ]
}

function migrateByKnex(knexfile: string): string {
  const command = posix.dirname(knexfile) === '.' ? 'npx knex migrate:latest' : `npx knex migrate:latest --knexfile ${knexfile}`
  return knexfile.endsWith('ts') ? `NODE_OPTIONS='--import tsx' ${command}` : command
}

/** The written command creates the secret when it runs, so the output of `init` contains no secret. */
function variables(app: App, plan: Plan, env: Env): string[] {
  const known = { NODE_ENV: 'development', AUTH_PUBLIC_URL: 'http://localhost:3000', AUTH_JWT_SECRET: '%s' }
  const missing = Object.entries(known).filter(([name]) => !env[name])
  const hasFile = existsSync(join(app.folder, '.env'))
  const text = missing.map(([name, value]) => `${name}=${value}\\n`).join('')
  const secret = env['AUTH_JWT_SECRET'] ? '' : ' "$(npx --no-install doorward secret)"'
  return [
    ...(missing.length > 0 ? [`printf '${hasFile ? '\\n' : ''}${text}'${secret} >> .env`] : []),
    ...(needsDatabaseUrl(plan) && !env['DATABASE_URL']
      ? ["echo 'DATABASE_URL=' >> .env # and the address of your database behind it"]
      : []),
  ]
}
