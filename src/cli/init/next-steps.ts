import { existsSync } from 'node:fs'
import { join, posix } from 'node:path'
import { needsDatabaseUrl, type Plan, usesRequire } from './auth-file'
import type { App } from './look-at-app'

/** The steps after `init`, as lines to copy. */
export interface NextSteps {
  readonly install: readonly string[]
  /** The lines to add to the app's code. */
  readonly lines: readonly string[]
  /** The commands that create `.env` and the tables, and start the app. */
  readonly start: readonly string[]
}

type Env = Readonly<Record<string, string | undefined>>

/**
 * Returns the next steps.
 * @param env the environment of the command, with the variables of the folder's `.env`
 */
export function nextSteps(app: App, plan: Plan, env: Env): NextSteps {
  return { install: install(app, plan), lines: lines(app), start: start(app, plan, env) }
}

/**
 * Returns the commands that install missing packages. The app needs nodemailer only in production. The commands install nodemailer now, so
 * that production has the package.
 */
function install(app: App, { choices }: Plan): string[] {
  const missing = (names: readonly string[]) => names.filter((name) => !app.installed(name))
  const packages = missing(['doorward', 'express', 'knex', choices.client, 'nodemailer'])
  const major = app.installed('express')?.split('.', 1)[0]
  const types = missing(['typescript', 'tsx', '@types/node', '@types/express'])
  const typesOf = (name: string) => (name === '@types/express' && major === '4' ? `${name}@4` : name)
  return [
    ...(packages.length > 0 ? [`npm install ${packages.join(' ')}`] : []),
    ...(app.language === 'TypeScript' && types.length > 0 ? [`npm install --save-dev ${types.map(typesOf).join(' ')}`] : []),
  ]
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

/**
 * Returns the command that writes the variables for this machine into `.env`. That command creates the secret when it runs, so the output
 * of `init` contains no secret.
 */
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
