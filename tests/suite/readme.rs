//! README's commands, run as they are pasted, and their output compared with what README shows.
//!
//! Each `##` section is a terminal with a shell of its own. A `text` block shows the output of the `sh` block before it: each
//! of its lines must be printed, where `…` stands for any text.

use crate::terminal::{Ports, Terminal, are_installed, install_programs, sections};

const README: &str = include_str!("../../README.md");

#[test]
fn the_commands_of_the_readme_do_what_it_shows() {
    if !are_installed(&["bash", "curl"]) {
        return;
    }
    let mut shown = 0;
    for blocks in sections(README) {
        let folder = tempfile::tempdir().unwrap();
        install_programs(folder.path());

        let ports = Ports::free();
        let (mut demo, mut is_pasted) = (None, false);
        let mut terminal = Terminal::open(folder.path(), ports);
        for block in blocks {
            let text = ports.put(&block.text);
            match block.language {
                // The demo runs until Ctrl-C in a terminal of its own. The lines that it exports are pasted into the other.
                "sh" if text.trim_end().ends_with("--demo") => {
                    let (first, exports) = Terminal::demo(folder.path(), ports, &text);
                    terminal.run(&exports);
                    demo = Some(first);
                }
                "sh" => {
                    terminal.run(&text);
                    is_pasted = true;
                }
                "text" => {
                    // What follows the demo's command is printed in its terminal, until the other one is used.
                    let terminal = demo.as_mut().filter(|_| !is_pasted).unwrap_or(&mut terminal);
                    for line in text.lines() {
                        terminal.wait_for(line);
                        shown += 1;
                    }
                }
                other => panic!("a block of README has the language {other:?}"),
            }
        }
        drop(demo);
    }
    assert!(shown >= 5, "README shows what its commands print");
}
