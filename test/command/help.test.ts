import { expect, test } from 'vitest'
import { examples, help } from '../../src/cli/run'
import { doorward } from './run-command'

test.each(Object.keys(examples))('doorward %s --help prints its own lines and examples, and no other command', async (command) => {
  const { exitCode, out, err } = await doorward(`${command} --help`)

  expect({ exitCode, err }).toEqual({ exitCode: 0, err: '' })
  for (const example of examples[command] ?? []) expect(out).toContain(`  ${example}\n`)
  for (const other of Object.keys(examples)) if (other !== command) expect(out).not.toContain(`\n  ${other} `)
  expect(out).toContain('--json')
})

test('a verb has its own line and example', async () => {
  const { out } = await doorward('users import --help')

  expect(out).toContain('--dry-run')
  expect(out).toContain('Examples:\n  doorward users import people.csv')
  expect(out).not.toContain('users export')
  expect(JSON.parse((await doorward('users import --help --json')).out)).toMatchObject({ examples: [expect.any(String)] })
})

test('every command of the help has examples, and every example is one that the command knows', async () => {
  const commands = new Set([...help.matchAll(/^ {2}([a-z]+)/gm)].map(([, command]) => command))
  expect([...commands].sort()).toEqual(Object.keys(examples).sort())
  for (const example of Object.values(examples).flat()) {
    const { err } = await doorward(example.replace(/^doorward /, '').replace(/ > .*/, ''))
    expect(err).not.toMatch(/takes no|Unknown option|^Write|Usage:/)
  }
})

test('help for a command that is none is exit 2', async () => {
  expect((await doorward('nothing --help')).exitCode).toBe(2)
  expect((await doorward('[ --help')).exitCode).toBe(2)
})
