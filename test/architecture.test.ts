import { readdirSync, readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join, posix } from 'node:path'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'

/** The bands, from low to high, and their folders (docs/architecture.md). A file imports from its own band or a lower one. */
const bands: Readonly<Record<string, readonly string[]>> = {
  base: ['core'],
  adapters: ['http', 'store', 'passwords', 'providers', 'mail', 'rate-limits'],
  features: [
    'context',
    'options',
    'sessions',
    'accounts',
    'second-factor',
    'invitations',
    'login-tasks',
    'outbox',
    'passkeys',
    'captcha',
    'social',
    'admin',
    'observers',
    'trusted-devices',
  ],
  faces: ['guards', 'pages', 'router'],
  tools: ['cli', 'testing', 'client', 'index'],
}

/** Packages with a fixed address: the only files that may import them. */
const homes: Readonly<Record<string, RegExp>> = {
  passport: /^social\/client-flow\.ts$/,
  'passport-oauth2': /^social\/client-flow\.ts$/,
  argon2: /^passwords\/password-hasher\.ts$/,
  '@node-rs/argon2': /^passwords\/password-hasher\.ts$/,
  bcrypt: /^passwords\/bcrypt-hasher\.ts$/,
  '@zxcvbn-ts/language-common': /^passwords\/check-password\.ts$/,
  undici: /^core\/http-client\.ts$/,
  jsonwebtoken: /^sessions\//,
  'cookie-parser': /^http\/cookies\.ts$/,
  '@simplewebauthn/server': /^passkeys\/webauthn\/ceremonies\.ts$/,
  knex: /^store\/knex\/|^router\/findings\/readiness\/check-tables\.ts$|^cli\/init\/(read-knexfile|users-table)\.ts$/,
  'prom-client': /^observers\/metrics\.ts$/,
  react: /^client\/react\.ts$/,
  speakeasy: /^second-factor\/accept-code\.ts$/,
  // The base, the store and the clients of providers know no Express.
  express:
    /^(http|rate-limits|sessions|accounts|second-factor|trusted-devices|passkeys|captcha|social|admin|invitations|login-tasks|guards|pages|router)\//,
}

/** What the build puts into the command's own file: hosts install none of it. */
const bundled: Readonly<Record<string, RegExp>> = {
  'csv-parse': /^cli\/file-rows\.ts$/,
  'csv-stringify/sync': /^cli\/export-users\.ts$/,
}

/** The one file that loads a module of the app's, whose name is known at run time alone. */
const loadsOfTheApp = /^cli\/load-module\.ts$/

/** Where the process's environment may be read. */
const environmentReaders = /^(cli\/main|core\/config\/environment|providers\/presets)\.ts$/

const src = join(import.meta.dirname, '../src')
const packageJson = JSON.parse(readFileSync(join(src, '../package.json'), 'utf8')) as Record<string, Record<string, string>>
const declared = new Set(Object.keys({ ...packageJson.dependencies, ...packageJson.peerDependencies }))

type Files = ReadonlyMap<string, string>

/** Every broken rule as one sentence. Paths are relative to `src`, with slashes. */
function violations(files: Files): string[] {
  const sources = [...files].map(([path, text]) => ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true))
  return [
    ...sources.flatMap((source) => [...placeOf(source), ...importsOf(source), ...syntaxOf(source), ...knexInternals(source)]),
    ...circles(sources),
  ]
}

function placeOf(source: ts.SourceFile): string[] {
  return bandOf(source.fileName) === -1 ? [`${source.fileName} belongs to no band`] : []
}

function importsOf(source: ts.SourceFile): string[] {
  return imports(source).flatMap(({ name, typeOnly }) => {
    if (name.startsWith('.')) return relativeImport(source.fileName, posix.join(posix.dirname(source.fileName), name))
    if (name === '(computed)' && loadsOfTheApp.test(source.fileName)) return []
    return isBuiltin(name) ? [] : packageImport(source.fileName, name, typeOnly)
  })
}

function relativeImport(from: string, to: string): string[] {
  if (to.startsWith('..')) return [`${from} imports ${to}, outside src`]
  if (bandOf(to) <= bandOf(from)) return []
  return [`${from} (${nameOf(from)}) imports ${to} (${nameOf(to)})`]
}

function packageImport(from: string, name: string, typeOnly: boolean): string[] {
  const packageName = name.split('/', name.startsWith('@') ? 2 : 1).join('/')
  if (bundled[name]?.test(from)) return []
  const home = homes[packageName]
  if (home && !home.test(from)) return [`${from} imports ${packageName}, which has another home`]
  if (name !== packageName && name !== 'knex/package.json') return [`${from} imports ${name}, which is no public entry of ${packageName}`]
  if (packageName === 'knex' && !typeOnly && from !== 'store/knex/knex-on.ts')
    return [`${from} imports knex as a value; the host passes its instance`]
  return declared.has(packageName) ? [] : [`${from} imports ${packageName}, which package.json does not declare`]
}

/** The store uses what Knex's types declare for its users. */
function knexInternals({ fileName, text }: ts.SourceFile): string[] {
  const found = /__knex\w*|\b(?:acquire|release)\w*Connection\b|\.toSQL = |\bclient\.(?:_?query|emit|pool|transaction)\b/.exec(text)
  return found ? [`${fileName} uses an internal of Knex: ${found[0]}`] : []
}

/** The files that lead back to themselves, types included. */
function circles(sources: readonly ts.SourceFile[]): string[] {
  const known = new Set(sources.map(({ fileName }) => fileName))
  const next = new Map(
    sources.map((source) => {
      const near = imports(source).filter(({ name }) => name.startsWith('.'))
      const paths = near.map(({ name }) => `${posix.join(posix.dirname(source.fileName), name).replace(/\.js$/, '')}.ts`)
      return [source.fileName, paths.filter((path) => known.has(path))]
    }),
  )
  const reached = (from: string, seen = new Set<string>()): Set<string> => {
    for (const file of next.get(from) ?? []) if (!seen.has(file)) reached(file, seen.add(file))
    return seen
  }
  return [...next.keys()].filter((file) => reached(file).has(file)).map((file) => `${file} stands in a circle`)
}

function syntaxOf(source: ts.SourceFile): string[] {
  const found: string[] = []
  const visit = (node: ts.Node): void => {
    if (isDefaultExport(node)) found.push(`${source.fileName} has a default export`)
    if (readsEnvironment(node) && !environmentReaders.test(source.fileName)) found.push(`${source.fileName} reads process.env`)
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

function isDefaultExport(node: ts.Node): boolean {
  return (
    ts.isExportAssignment(node) ||
    node.kind === ts.SyntaxKind.DefaultKeyword ||
    (ts.isExportSpecifier(node) && node.name.text === 'default')
  )
}

/** `process.env`, and every way around the words: a bare `process`, `process[…]`, `globalThis.process`, `node:process`. */
function readsEnvironment(node: ts.Node): boolean {
  if (ts.isStringLiteral(node)) return /^(node:)?process$/.test(node.text) && !ts.isLiteralTypeNode(node.parent)
  if (!ts.isIdentifier(node) || node.text !== 'process') return false
  const { parent } = node
  return !(ts.isPropertyAccessExpression(parent) && parent.expression === node && parent.name.text !== 'env')
}

interface Import {
  name: string
  typeOnly: boolean
}

function imports(source: ts.SourceFile): Import[] {
  const found: Import[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node))
      found.push({ name: textOf(node.moduleSpecifier), typeOnly: node.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword })
    if (ts.isExportDeclaration(node) && node.moduleSpecifier) found.push({ name: textOf(node.moduleSpecifier), typeOnly: node.isTypeOnly })
    if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument))
      found.push({ name: textOf(node.argument.literal), typeOnly: true })
    if (ts.isCallExpression(node) && loads(node.expression)) found.push({ name: textOf(node.arguments[0]), typeOnly: false })
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

function loads(callee: ts.Expression): boolean {
  return callee.kind === ts.SyntaxKind.ImportKeyword || (ts.isIdentifier(callee) && callee.text === 'require')
}

/** A module named at run time cannot be judged: it counts as a package nobody declared. */
function textOf(node: ts.Node | undefined): string {
  return node && ts.isStringLiteralLike(node) ? node.text : '(computed)'
}

function bandOf(path: string): number {
  const folder = (path.split('/')[0] ?? '').replace(/\.ts$/, '')
  return Object.values(bands).findIndex((folders) => folders.includes(folder))
}

function nameOf(path: string): string {
  return Object.keys(bands)[bandOf(path)] ?? 'no band'
}

function sourceFiles(): Files {
  const paths = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts'))
  return new Map(paths.map((path) => [path.replaceAll('\\', '/'), readFileSync(join(src, path), 'utf8')]))
}

describe('the house', () => {
  test('every file has a band, imports never go up, no file leads back to itself, and every package has its place', () => {
    const files = sourceFiles()

    expect(files.size).toBeGreaterThan(15)
    expect(violations(files)).toEqual([])
  })

  test.each<[broken: string, path: string, text: string, sentence: string]>([
    ['an import upwards', 'sessions/refresh.ts', "import { x } from '../guards/guards'", '(features) imports guards/guards (faces)'],
    ['a re-export upwards', 'http/routes.ts', "export { x } from '../sessions/refresh'", '(adapters) imports sessions/refresh (features)'],
    ['a type import upwards', 'core/config/settings.ts', "import type { X } from '../../context'", 'imports context (features)'],
    ['an inline type upwards', 'core/errors.ts', "export type X = import('../context').AuthContext", 'imports context (features)'],
    ['a dynamic import upwards', 'store/knex/table.ts', "export const x = () => import('../../router/service')", 'imports router/service'],
    ['an import out of src', 'index.ts', "import x from '../package.json'", 'outside src'],
    ['a file without a band', 'utils/strings.ts', 'export const x = 1', 'belongs to no band'],
    ['passport outside its file', 'social/routes.ts', "import passport from 'passport'", 'imports passport, which has another home'],
    ['passport-oauth2 outside its file', 'providers/google.ts', "import { Strategy } from 'passport-oauth2'", 'another home'],
    ['argon2 outside passwords', 'social/log-in.ts', "import argon2 from 'argon2'", 'another home'],
    ['bcrypt by require in another hasher', 'passwords/password-hasher.ts', "const bcrypt = require('bcrypt')", 'another home'],
    ['undici outside the HTTP client', 'providers/oidc-client.ts', "import { request } from 'undici'", 'another home'],
    ['undici by require', 'providers/oidc-client.ts', "const { request } = require('undici')", 'another home'],
    [
      'an inner file of a package',
      'core/http-client.ts',
      "const agent = require('undici/lib/dispatcher/agent')",
      'no public entry of undici',
    ],
    ['cookie-parser outside cookies.ts', 'social/state-cookie.ts', "import { JSONCookie } from 'cookie-parser'", 'another home'],
    ['jsonwebtoken in a guard', 'guards/create-guards.ts', "import jwt from 'jsonwebtoken'", 'another home'],
    ['jsonwebtoken in a provider client', 'providers/signed-token.ts', "import jwt from 'jsonwebtoken'", 'another home'],
    ['knex beside the store', 'accounts/account-routes.ts', "import type { Knex } from 'knex'", 'another home'],
    ['knex as a value', 'store/knex/knex-store.ts', "import { knex } from 'knex'", 'as a value'],
    ['a private field of Knex', 'store/knex/connection.ts', 'connection.__knexTxId = 1', 'an internal of Knex: __knexTxId'],
    ['a raw connection', 'store/knex/connection.ts', 'client.acquireConnection()', 'an internal of Knex'],
    ['an overridden method of Knex', 'store/knex/connection.ts', 'raw.toSQL = () => 1', 'an internal of Knex'],
    ['a file that imports itself', 'store/knex/table.ts', "import type { Table } from './table'", 'stands in a circle'],
    ['express in a provider client', 'providers/google.ts', "import type { Request } from 'express'", 'another home'],
    ['an undeclared package', 'http/route.ts', "import { z } from 'zod'", 'package.json does not declare'],
    ['a module named at run time', 'http/route.ts', 'export const load = (name: string) => import(name)', '(computed)'],
    ['a default export', 'http/route.ts', 'export default function route() {}', 'default export'],
    ['a default export by name', 'http/route.ts', 'const route = 1\nexport { route as default }', 'default export'],
    ['an export assignment', 'http/route.ts', 'export = 1', 'default export'],
    ['process.env', 'social/routes.ts', 'export const x = process.env.HOME', 'reads process.env'],
    ['process.env by brackets', 'social/routes.ts', "export const x = process['env']", 'reads process.env'],
    ['process.env by destructuring', 'social/routes.ts', 'const { env } = process', 'reads process.env'],
    ['process.env by globalThis', 'social/routes.ts', 'export const x = globalThis.process.env', 'reads process.env'],
    ['process.env by node:process', 'social/routes.ts', "import { env } from 'node:process'", 'reads process.env'],
  ])('%s is found', (_broken, path, text, sentence) => {
    expect(violations(new Map([[path, text]])).join('\n')).toContain(sentence)
  })

  test('what the rules allow is not found', () => {
    const allowed = new Map([
      [
        'store/knex/users.ts',
        "import type { Knex } from 'knex'\nimport { text } from './table'\nimport { AppError } from '../../core/errors'",
      ],
      ['core/config/environment.ts', "export const isProduction = process.env['NODE_ENV'] !== 'development'"],
      [
        'social/routes.ts',
        "import { setTimeout } from 'node:timers'\nimport { finishLogin } from '../sessions/start-login'\nprocess.nextTick(() => {})",
      ],
    ])

    expect(violations(allowed)).toEqual([])
  })
})
