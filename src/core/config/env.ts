import type { EnvSettings } from './every-setting'
import { environmentVariable, inputNames } from './settings'

/**
 * Reads the variables of docs/configuration.md as text. The function reads no other variable. A missing or empty variable counts as unset.
 * At boot, the library converts and checks the text.
 * @param env the variables to read; default `process.env`
 */
export function settingsFromEnv(env: Readonly<Record<string, string | undefined>> = process.env): EnvSettings {
  const variables = inputNames.map((setting) => [setting, env[environmentVariable(setting)]] as const)
  return Object.fromEntries(variables.filter(([, text]) => text)) as EnvSettings // the object has the names of the settings as keys
}
